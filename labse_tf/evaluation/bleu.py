"""BLEU and chrF of translations, by sacreBLEU (Post 2018, arXiv 1804.08771)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# sacreBLEU splits English-like text and Chinese without further packages. In other languages that
# put no spaces between words it would count sentences as words, and in Korean words with particles.
_CHARACTERS = ("ja", "ko", "th", "lo", "km", "my", "bo")
_TOKENIZERS = {"zh": "zh", **dict.fromkeys(_CHARACTERS, "char")}


def score_translations(
    translations: Sequence[str], references: Sequence[str], language: str
) -> dict[str, dict[str, Any]]:
    """Returns for `BLEU` and `chrF` the `score`, from 0 to 100, and sacreBLEU's `signature`.

    Args:
      translations: a text for each reference.
      references: texts in the same language.
      language: its code, which chooses the words that BLEU counts.

    Raises:
      ValueError: if their numbers differ.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(translations) != len(references):
        raise ValueError(f"{len(translations)} translations, {len(references)} references")
    found = {}
    for metric in (BLEU(tokenize=_TOKENIZERS.get(language, "13a")), CHRF()):
        score = metric.corpus_score(list(translations), [list(references)])
        signature = str(metric.get_signature())
        found[score.name.removesuffix("2")] = {"score": score.score, "signature": signature}
    return found
