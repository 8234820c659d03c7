"""BLEU and chrF of translations, by sacreBLEU (Post 2018, arXiv 1804.08771)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# sacreBLEU splits English-like text and Chinese without further packages. In other languages that
# put no spaces between words it would count sentences as words, and in Korean words with particles.
_CHARACTERS = ("ja", "ko", "th", "lo", "km", "my", "bo")
_TOKENIZERS = {"zh": "zh", **dict.fromkeys(_CHARACTERS, "char")}


class Score(NamedTuple):
    """A metric of a set of translations.

    Attributes:
      name: BLEU or chrF.
      score: from 0 to 100.
      signature: how sacreBLEU computed it, to compare with other figures.
    """

    name: str
    score: float
    signature: str


def score_translations(
    translations: Sequence[str], references: Sequence[str], language: str
) -> list[Score]:
    """Returns BLEU and chrF.

    Args:
      translations: a text for each reference.
      references: one each.
      language: code of theirs, which chooses the words that BLEU counts.

    Raises:
      ValueError: if their numbers differ.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(translations) != len(references):
        raise ValueError(f"{len(translations)} translations, {len(references)} references")
    metrics = BLEU(tokenize=_TOKENIZERS.get(language, "13a")), CHRF()
    found = []
    for name, metric in zip(("BLEU", "chrF"), metrics, strict=True):
        score = metric.corpus_score(list(translations), [list(references)]).score
        found.append(Score(name, score, str(metric.get_signature())))
    return found
