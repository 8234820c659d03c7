"""Weights of the words of each language in a vocabulary for many languages.

Without weights, the words of the largest languages would take up nearly all of the vocabulary.
LaBSE (arXiv 2007.01852, section 3.2) therefore smooths the language shares with the exponent 0.3
before the vocabulary is learned.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping


def smoothing_coefficients(
    token_counts: Mapping[str, int], exponent: float = 0.3
) -> dict[str, float]:
    """Returns the weight of one word occurrence in each language.

    With p(l) the share of language l in all tokens and s the exponent, the weight is

        weight(l) = p(l)**s / sum over k of p(k)**s / p(l)

    so the weighted share of a language is proportional to p(l)**s, and the weighted total over
    all languages equals the unweighted total. With exponent 1 every weight is 1; with exponent 0
    all languages have the same weighted total.

    Raises:
      ValueError: if there is no language, a count is below 1 or not finite, or the exponent is
        outside 0..1.
    """
    if not 0 <= exponent <= 1:
        raise ValueError(f"exponent is {exponent}; give a number from 0 to 1 (LaBSE: 0.3)")
    if not token_counts:
        raise ValueError("token_counts is empty; give the token count of at least one language")
    for language, count in token_counts.items():
        if not 1 <= count < math.inf:
            raise ValueError(
                f"language {language!r} has {count} tokens; leave it out or give 1 or more"
            )
    # fsum rounds once, so the weights do not depend on the order of the languages.
    total = math.fsum(token_counts.values())
    shares = {language: count / total for language, count in token_counts.items()}
    smoothed_total = math.fsum(share**exponent for share in shares.values())
    return {
        language: share**exponent / smoothed_total / share for language, share in shares.items()
    }


def weigh_counts(
    counts: Mapping[str, Mapping[str, int]], coefficients: Mapping[str, float]
) -> dict[str, float]:
    """Returns word -> the sum of its counts, each times its language's coefficient.

    Languages are added in the order of `coefficients`.
    """
    weighted: dict[str, float] = defaultdict(float)
    for language, coefficient in coefficients.items():
        for word, count in counts.get(language, {}).items():
            weighted[word] += coefficient * count
    return weighted
