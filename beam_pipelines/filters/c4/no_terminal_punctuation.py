"""Drops lines that do not end like a sentence: menus, headings, buttons (C4, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from beam_pipelines.filters import LINES, Use
from beam_pipelines.records.records import Sentence
from labse_tf.files.record_kinds import MONOLINGUAL

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


class NoTerminalPunctuation:
    """Score: 1.0 if the line ends in terminal punctuation of any script, else 0.0.

    Closing quotation marks and brackets may follow it. Thai and Lao have no terminal punctuation,
    so all their lines score 1.0.

    >>> NoTerminalPunctuation().score([Sentence("Er kam (spät).", "de"), Sentence("Menü", "de")])
    [1.0, 0.0]
    """

    name = "no_terminal_punctuation"
    uses = {MONOLINGUAL: Use(order=10, stage=LINES)}
    threshold = 1.0

    def score(self, records: Sequence[Sentence]) -> list[float]:
        return [float(_ends(record.text, record.language)) for record in records]

    def accept(self, score: float) -> bool:
        return score >= self.threshold


def _ends(text: str, language: str) -> bool:
    if language in _WITHOUT_PUNCTUATION:
        return True
    return _ENDS_IN.get(language, _ENDS).search(text[-_TAIL:]) is not None
