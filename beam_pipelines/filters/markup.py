"""Drops pairs that are mostly mark-up: tags, entities, addresses, placeholders."""

from __future__ import annotations

import regex

from beam_pipelines.filters import AtMost, Option, Use
from beam_pipelines.records import Pair
from labse_tf.files.record_kinds import BITEXT

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
        return max(_share(pair.source), _share(pair.target))


def _share(text: str) -> float:
    if _HINT.search(text) is None:
        return 0.0
    whole = len("".join(text.split()))
    rest = len("".join(_MARKUP.sub("", text).split()))
    return (whole - rest) / max(whole, 1)
