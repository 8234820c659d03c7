"""Drops records with too few or too many characters, and pairs with sides of unlike lengths.

The default limits are those of LaBSE's monolingual data (section 3.1). Pairs have a lower minimum:
"Go." and its Chinese translation of two characters are a valid pair.
"""

from __future__ import annotations

from beam_pipelines.filters import LENGTHS, AtLeast, AtMost, Option, Use
from beam_pipelines.records import Pair, Record, texts_of
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL


class TooShort(AtLeast):
    """Score: characters (Unicode code points) of the record's shortest text.

    >>> pairs = [Pair("Go.", "去。", "zh"), Pair("Run!", "跑", "zh")]
    >>> [TooShort(2).accept(score) for score in TooShort(2).score(pairs)]
    [True, False]
    """

    name = "too_short"
    threshold = 10
    _help = "drop lines with fewer characters, before they are split"
    _option = Option("--min-characters", _help, "N", type=int)
    _for_pairs = _option._replace(help="drop pairs with a side of fewer characters", default=2)
    uses = {BITEXT: Use(10, _for_pairs), MONOLINGUAL: Use(10, _option, stage=LENGTHS)}

    def score_record(self, record: Record) -> int:
        return min(map(len, texts_of(record)))


class TooLong(AtMost):
    """Score: characters (Unicode code points) of the record's longest text.

    >>> TooLong(12).score([Sentence("Good morning.", "en"), Sentence("你好。", "zh")])
    [13, 3]
    >>> TooLong(12).accept(13)
    False
    """

    name = "too_long"
    threshold = 5000
    _help = "drop lines with more characters, before they are split"
    _option = Option("--max-characters", _help, "N", type=int)
    _for_pairs = _option._replace(help="drop pairs with a side of more characters")
    uses = {BITEXT: Use(20, _for_pairs), MONOLINGUAL: Use(20, _option, stage=LENGTHS)}

    def score_record(self, record: Record) -> int:
        return max(map(len, texts_of(record)))


class LengthRatio(AtMost):
    """Score: characters of the longer side over characters of the shorter one, 1.0 or more.

    Characters, because counting words needs spaces, which Chinese, Japanese, Thai and others lack.
    The default is generous because Chinese needs few characters: of 830,000 pairs of Tatoeba and
    NTREX-128 in 130 languages, 11 had a ratio above 9, and 7 of these 11 were wrong pairs.

    >>> LengthRatio().score([Pair("It is a privilege to meet you.", "幸会幸会。", "zh")])
    [6.0]
    >>> LengthRatio(threshold=4).accept(6.0)
    False
    """

    name = "length_ratio"
    threshold = 9.0
    _help = "drop pairs with one side of more than X times the other's characters"
    uses = {BITEXT: Use(30, Option("--max-length-ratio", _help))}

    def score_record(self, pair: Pair) -> float:
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        return longer / max(shorter, 1)
