"""The baseline that needs no training: TF-IDF of character n-grams.

It finds translations that share letters: names, numbers, loan words, related languages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_NGRAM_CHARACTERS = (1, 4)


def tfidf_similarities(sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
    """Returns the cosine similarity of every source to every target: float `[n, m]`.

    The document frequencies are those of the pool itself, both sides together.
    """
    # Here, since every training run measures retrieval, and this takes most of a second.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=_NGRAM_CHARACTERS, sublinear_tf=True
    )
    vectors = vectorizer.fit_transform([*sources, *targets])
    return (vectors[: len(sources)] @ vectors[len(sources) :].T).toarray()
