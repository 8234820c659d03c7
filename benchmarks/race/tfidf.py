"""TF-IDF of character n-grams as an encoder of any task, for `labse eval`.

    RACE_DATA=DATA labse eval all benchmarks.race.tfidf:Tfidf --data TESTSETS --out RESULTS

Document frequencies are those of the race's training pairs, DATA/train. The n-grams are those of
`labse_tf.evaluation.tasks.retrieval`, hashed; a count sketch (Charikar et al. 2002) makes 2,048
columns of them. That changes a cosine by about 0.02, and lets the vectors of all tasks stay in
memory.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from labse_tf.files import textio
from labse_tf.files.corpus_files import BITEXT, find_corpus_files

_PAIRS_PER_LANGUAGE, _HASHED, _DIM = 1000, 1 << 20, 2048
_AT_ONCE = 10_000


class Tfidf:
    """Encoder: `encode` returns float32 `[n, 2048]`."""

    dim = _DIM

    def __init__(self) -> None:
        files = find_corpus_files([os.path.join(os.environ["RACE_DATA"], "train")], kind=BITEXT)
        texts = [
            text
            for file in files
            for _, *pair in itertools.islice(textio.read_pairs(file.path), _PAIRS_PER_LANGUAGE)
            for text in pair
        ]
        self._hashed = HashingVectorizer(
            analyzer="char_wb",
            ngram_range=(1, 4),
            n_features=_HASHED,
            norm=None,
            alternate_sign=False,
        )
        self._weights = TfidfTransformer(sublinear_tf=True).fit(self._hashed.transform(texts))
        random = np.random.default_rng(1)
        signs, columns = random.choice([-1.0, 1.0], _HASHED), random.integers(_DIM, size=_HASHED)
        self._sketch = scipy.sparse.csr_matrix((signs, (np.arange(_HASHED), columns)))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns a row per text."""
        parts = [
            (self._weights.transform(self._hashed.transform(some)) @ self._sketch).toarray()
            for some in (texts[at : at + _AT_ONCE] for at in range(0, len(texts), _AT_ONCE))
        ]
        return np.concatenate(parts).astype(np.float32)
