"""Drops records of numbers and symbols, which have nothing to translate, and pairs of mark-up."""

from __future__ import annotations

import regex

from beam_pipelines.filters import AtLeast, AtMost, Option, Use
from beam_pipelines.records import Pair, Record, texts_of
from labse_tf.files.record_kinds import BITEXT

_OTHERS_OF_ASCII = bytes(code for code in range(128) if not chr(code).isalpha())
_OTHERS = regex.compile(r"[^\p{L}\p{M}]+")


class FewLetters(AtLeast):
    """Score: share (0 to 1) of letters among the characters of a text; the lowest of the record.

    Combining marks count as letters (the vowel signs of Hindi or Thai are marks); white space is
    ignored. Of 400,000 pairs of Tatoeba and NTREX-128, four score below the default.

    >>> FewLetters().score([Sentence("5 km", "de"), Sentence("10:30", "de")])
    [0.6666666666666666, 0.0]
    """

    name = "few_letters"
    threshold = 0.2
    _help = "drop pairs with a side of which less than X (0 to 1) is letters"
    uses = {BITEXT: Use(50, Option("--min-letters-share", _help))}

    def score_record(self, record: Record) -> float:
        return min(map(_letters_share, texts_of(record)))


def _letters_share(text: str) -> float:
    characters = "".join(text.split())
    if characters.isalpha():
        return 1.0
    if characters.isascii():
        return len(characters.encode().translate(None, _OTHERS_OF_ASCII)) / max(len(characters), 1)
    # One regular expression pass: testing each character took half the time of the whole job.
    return len(_OTHERS.sub("", characters)) / max(len(characters), 1)


# A tag begins with a letter, a slash or an exclamation mark, so "a < b" is not one.
_MARKUP = regex.compile(
    r"""<[/!?]?[A-Za-z][^<>]{0,500}>      # <p>, </p>, <br/>, <a href="...">
    | &(?:[A-Za-z]{2,8}|\#\d{1,7}|\#x[0-9A-Fa-f]{1,6});
    | (?:https?|ftp)://[^\s<>"]+ | \bwww\.[^\s<>"]+
    | [\w.+-]+@[\w-]+\.[\w.-]+
    | \$?\{\{?[^{}\s]{0,60}\}?\} | %\(\w{1,40}\)[sd] | %[sd]
    """,
    regex.VERBOSE,
)
# Most text has none of these, and searching for single characters is fast.
_HINT = regex.compile(r"[<&@{%]|://|www\.")


class Markup(AtMost):
    """Score: the share (0 to 1) of a side's characters that are mark-up; the greater of the two.

    Mark-up is HTML or XML tags, entities (`&nbsp;`), web and email addresses, and software
    placeholders (`{name}`, `%s`, `${x}`). White space is ignored.

    >>> Markup().score([Pair("Yes", "<b> Ja </b>", "de")])  # 7 of 9 characters
    [0.7777777777777778]
    """

    name = "markup"
    threshold = 0.4
    _help = "drop pairs with a side of which more than X (0 to 1) is mark-up"
    uses = {BITEXT: Use(70, Option("--max-markup-share", _help))}

    def score_record(self, pair: Pair) -> float:
        return max(_markup_share(pair.source), _markup_share(pair.target))


def _markup_share(text: str) -> float:
    if _HINT.search(text) is None:
        return 0.0
    whole = len("".join(text.split()))
    rest = len("".join(_MARKUP.sub("", text).split()))
    return (whole - rest) / max(whole, 1)
