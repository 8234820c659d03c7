"""Drops pairs with a side that is not written in a script of its language."""

from __future__ import annotations

import functools

import regex

from beam_pipelines.filters import AtLeast, Option, Use
from beam_pipelines.records import ENGLISH, Pair
from labse_tf.files.record_kinds import BITEXT
from labse_tf.languages import LANGUAGES, UNKNOWN_SCRIPT, script_of

# Values of the Unicode property Script for those codes of scripts that stand for several.
_SCRIPTS = {
    "Jpan": ("Hira", "Kana", "Hani"),
    "Kore": ("Hang", "Hani"),
    "Hani": ("Hani", "Bopo"),
}
# Further scripts of a language, in use in whole countries or until recently.
_SECOND_SCRIPTS = {
    "az": ("Cyrl", "Arab"), "bs": ("Cyrl",), "ha": ("Arab",), "kk": ("Latn", "Arab"),
    "ku": ("Arab", "Cyrl"), "ky": ("Latn", "Arab"), "mn": ("Mong",), "ms": ("Arab",),
    "pa": ("Arab",), "ro": ("Cyrl",), "sr": ("Latn",), "tg": ("Latn", "Arab"), "tk": ("Cyrl",),
    "tt": ("Latn",), "ug": ("Latn", "Cyrl"), "uz": ("Cyrl",),
}  # fmt: skip

_LATIN = "Latn"
_LETTER = regex.compile(r"\p{L}")


class WrongScript(AtLeast):
    """Score: share (0 to 1) of a side's letters in scripts of its language; the lower of the two.

    A side without letters scores 1. The default leaves room for names, brands and terms in Latin
    letters, of which software has many.

    >>> pair = Pair("Good day", "Добар дан", "sr")
    >>> WrongScript().score([pair, pair._replace(language="de")])
    [1.0, 0.0]
    """

    name = "wrong_script"
    threshold = 0.3
    _help = (
        "drop pairs with a side with less than X (0 to 1) of its letters in its language's scripts"
    )
    uses = {BITEXT: Use(80, Option("--min-script-share", _help))}

    def score_record(self, pair: Pair) -> float:
        return min(_share(pair.source, ENGLISH), _share(pair.target, pair.language))

    def knows(self, language: str) -> bool:
        return bool(scripts_of(language))


@functools.cache
def scripts_of(language: str) -> tuple[str, ...]:
    """Returns the ISO 15924 codes of the scripts that a language may use, () if none is known.

    A language that is not one of the paper's may also use Latin letters, as many do beside their
    own, unless its code names a script.
    """
    main = script_of(language)
    if main == UNKNOWN_SCRIPT:
        return ()
    scripts = _SCRIPTS.get(main, (main,))
    if language not in LANGUAGES and "-" not in language and main != _LATIN:
        return (*scripts, _LATIN)
    return (*scripts, *_SECOND_SCRIPTS.get(language, ()))


def _share(text: str, language: str) -> float:
    if not scripts_of(language):
        return 1.0
    foreign, latin = _foreign_letter(language)
    # One fast test is enough for nearly all text.
    if (latin and text.isascii()) or foreign.search(text) is None:
        return 1.0
    return 1 - len(foreign.findall(text)) / len(_LETTER.findall(text))


@functools.cache
def _foreign_letter(language: str) -> tuple[regex.Pattern, bool]:
    """Returns a pattern of a letter not in the language's scripts, and whether Latin is one."""
    scripts = scripts_of(language)
    classes = "".join(rf"\p{{Script={script}}}" for script in scripts)
    # Common has letters that several scripts share, such as the long vowel mark of kana.
    own = rf"[{classes}\p{{Script=Common}}\p{{Script=Inherited}}]"
    return regex.compile(rf"[\p{{L}}--{own}]", regex.VERSION1), _LATIN in scripts
