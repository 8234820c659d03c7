"""Hashed character n-grams of texts, with NumPy: many times faster than one text at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MIN_N, MAX_N = 1, 4
BITS = 18
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Marks the start and end of a text in n-grams; no text contains it.
_EDGE = "\x00"


def hash_ngrams(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the hashes of the n-grams of 1 to 4 characters, and the text that each is from.

    Both are `[n-grams of all texts]`: int64 hashes of `BITS` bits, and int64 indices in `texts`.
    Letter case matters. Equal texts have the same hashes on every machine.
    """
    joined = "".join(f"{_EDGE}{text}{_EDGE}" for text in texts)
    # A lone surrogate is not a character, but may occur in broken web pages.
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    owners = np.repeat(np.arange(len(texts)), [len(text) + 2 for text in texts])
    hashes, places = [], []
    rolling = np.zeros(len(codes), np.uint64)
    for n in range(1, MAX_N + 1):
        # The hash of n characters is computed from that of the first n - 1 and the n-th.
        length = len(codes) - n + 1
        if length < 1:
            break
        rolling = (rolling[:length] + codes[n - 1 :] + np.uint64(n)) * _MULTIPLIER
        rolling ^= rolling >> np.uint64(29)
        if n >= MIN_N:
            inside = owners[:length] == owners[n - 1 :]
            hashes.append((rolling[inside] >> np.uint64(64 - BITS)).astype(np.int64))
            places.append(owners[:length][inside])
    if not hashes:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(hashes), np.concatenate(places)
