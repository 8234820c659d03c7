"""The heuristics of C4 for web pages (Raffel et al. 2020, section 2.2), stage by stage."""

from __future__ import annotations

import regex

from beam_pipelines.filters import LINES, PAGES, RESTS, AtLeast, AtMost, Option, Use
from beam_pipelines.records import Document, Sentence
from beam_pipelines.sentences import split_sentences
from labse_tf.files.record_kinds import MONOLINGUAL


class LoremIpsum(AtMost):
    """Score: number of occurrences of "lorem ipsum" in the page or line, ignoring case.

    >>> LoremIpsum().score([Document("Lorem ipsum dolor\\nsit amet", "en")])
    [1]
    """

    name = "lorem_ipsum"
    threshold = 0
    uses = {MONOLINGUAL: Use(10, stage=PAGES)}

    def score_record(self, record: Document | Sentence) -> int:
        return record.text.lower().count("lorem ipsum")


class CurlyBracket(AtMost):
    """Score: number of opening curly brackets, as in program code, in the page or line.

    >>> CurlyBracket().score([Document("if (x) { y(); }", "en")])
    [1]
    """

    name = "curly_bracket"
    threshold = 0
    uses = {MONOLINGUAL: Use(20, stage=PAGES)}

    def score_record(self, record: Document | Sentence) -> int:
        return record.text.count("{")


# Languages whose sentences end with only a space.
_WITHOUT_PUNCTUATION = frozenset(("th", "lo"))

# Unicode's property covers nearly all scripts: Arabic ؟, Urdu ۔, Devanagari ।, Khmer ។,
# Ethiopic ።, Burmese ။, full-width ones. It lacks the Tibetan marks, the ellipsis, and the two word
# spaces that often stand for the Ethiopic full stop.
_MARK = r"(?:[\p{Sentence_Terminal}།༎༏༐༑…]|፡፡)"
_CLOSING = r"""[\p{Pe}\p{Pf}\p{Pi}"'\s]*"""
# A closing quotation mark is enough by itself, as in C4.
_END = rf"""(?:{_MARK}{_CLOSING}|["”»」』]\s*)$"""

_ENDS = regex.compile(_END)
# Marks often typed in place of the script's own: a semicolon for the Greek question mark, a colon
# for the Armenian full stop, a vertical bar for the danda.
_STAND_INS = {"el": ";", "hy": ":"} | dict.fromkeys(("as", "bn", "hi", "mr", "ne", "or", "pa"), "|")
_ENDS_IN = {
    language: regex.compile(rf"(?:{_END}|{regex.escape(mark)}{_CLOSING}$)")
    for language, mark in _STAND_INS.items()
}
# The longest sentence end recognized: a mark, and some closing brackets and quotation marks.
_TAIL = 20


class NoTerminalPunctuation(AtLeast):
    """Score: 1.0 if the line ends in terminal punctuation of any script, else 0.0.

    Menus, headings and buttons do not. Closing quotation marks and brackets may follow the mark.
    Thai and Lao have no terminal punctuation, so all their lines score 1.0.

    >>> NoTerminalPunctuation().score([Sentence("Er kam (spät).", "de"), Sentence("Menü", "de")])
    [1.0, 0.0]
    """

    name = "no_terminal_punctuation"
    threshold = 1.0
    uses = {MONOLINGUAL: Use(10, stage=LINES)}

    def score_record(self, record: Sentence) -> float:
        if record.language in _WITHOUT_PUNCTUATION:
            return 1.0
        ends = _ENDS_IN.get(record.language, _ENDS).search(record.text[-_TAIL:])
        return float(ends is not None)


# Scripts that do not separate words -> characters per word, about the mean in running text.
_CHARACTERS_PER_WORD = (
    (regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]"), 2),
    (regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"), 5),
)
_UNSEPARATED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
)
# Tibetan separates syllables; a word has about two.
_TIBETAN_SYLLABLE = regex.compile(r"[\p{Tibetan}--[\u0f0b-\u0f14]]+", regex.V1)
_SYLLABLES_PER_WORD = 2
_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")


class FewWords(AtLeast):
    """Score: approximate number of words.

    A word is text between spaces that has a letter or digit. In scripts without spaces, 2 Chinese
    or Japanese characters, 5 Thai, Lao, Khmer or Burmese characters (including marks) or 2 Tibetan
    syllables count as a word.

    >>> FewWords().score([Sentence("See you - tomorrow", "en"), Sentence("今天天气很好", "zh")])
    [3, 3]
    """

    name = "few_words"
    threshold = 5
    _option = Option("--min-words", "of C4: drop lines with fewer words", "N", type=int)
    uses = {MONOLINGUAL: Use(20, _option, stage=LINES)}

    def score_record(self, record: Sentence) -> int:
        text, unseparated = record.text, 0.0
        if not text.isascii() and _UNSEPARATED.search(text):
            for characters, per_word in _CHARACTERS_PER_WORD:
                unseparated += len(characters.findall(text)) / per_word
            unseparated += len(_TIBETAN_SYLLABLE.findall(text)) / _SYLLABLES_PER_WORD
            text = _UNSEPARATED.sub(" ", text)
        return sum(1 for word in text.split() if _LETTER.search(word)) + int(unseparated)


class Javascript(AtMost):
    """Score: number of occurrences of "javascript" in the line, mostly requests to enable it.

    >>> Javascript().score([Sentence("Please enable JavaScript.", "en")])
    [1]
    """

    name = "javascript"
    threshold = 0
    uses = {MONOLINGUAL: Use(30, stage=LINES)}

    def score_record(self, record: Sentence) -> int:
        return record.text.lower().count("javascript")


# C4's own list. English only, because pages in all languages have such notices in English.
_NOTICES = (
    *("terms of use", "privacy policy", "cookie policy"),
    *("uses cookies", "use of cookies", "use cookies"),
)


class PolicyNotice(AtMost):
    """Score: how many of C4's phrases about a site's policies occur in the line, ignoring case.

    >>> PolicyNotice().score([Sentence("Terms of Use and Privacy Policy", "en")])
    [2]
    """

    name = "policy_notice"
    threshold = 0
    uses = {MONOLINGUAL: Use(40, stage=LINES)}

    def score_record(self, record: Sentence) -> int:
        text = record.text.lower()
        return sum(notice in text for notice in _NOTICES)


class FewSentences(AtLeast):
    """Score: number of sentences in what is left of a page.

    >>> FewSentences().score([Document("One. Two.\\nThree.", "en")])
    [3]
    """

    name = "few_sentences"
    threshold = 3
    _help = "of C4: drop pages of which fewer sentences are left"
    _option = Option("--min-sentences", _help, "N", type=int)
    uses = {MONOLINGUAL: Use(10, _option, stage=RESTS)}

    def score_record(self, record: Document) -> int:
        lines = record.text.split("\n")
        return sum(len(split_sentences(line, record.language)) for line in lines)
