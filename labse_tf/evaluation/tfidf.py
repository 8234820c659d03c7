"""A baseline that needs no training: TF-IDF of character n-grams.

It finds translations that share letters: names, numbers, loan words, related languages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_NGRAM_CHARACTERS = (1, 4)


def tfidf_similarities(sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
    """Returns the cosine similarities of every source and every target: float `[n, m]`.

    Document frequencies are computed from the pool itself, both sides together.
    """
    # Imported here because it takes most of a second, and every training run measures retrieval.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=_NGRAM_CHARACTERS, sublinear_tf=True
    )
    vectors = vectorizer.fit_transform([*sources, *targets])
    return (vectors[: len(sources)] @ vectors[len(sources) :].T).toarray()
