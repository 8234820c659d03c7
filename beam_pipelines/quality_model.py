"""A linear model of text quality over hashed character n-grams: its features, files and scores.

A model is a folder: `weights.npz` with the weights, `model.json` with facts about its training.
Neither is a pickle, so a model of unknown origin can do no harm.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labse_tf.errors import InputError

MAX_N = 4
BITS = 18
# The features that the weights are for; a model with other features is refused.
FEATURES = {"min_n": 1, "max_n": MAX_N, "bits": BITS}
WEIGHTS_FILE, FACTS_FILE = "weights.npz", "model.json"
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
    hashes, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rolling = np.zeros(len(codes), np.uint64)
    for n in range(1, min(MAX_N, len(codes)) + 1):
        # The hash of n characters is computed from that of the first n - 1 and the n-th.
        length = len(codes) - n + 1
        rolling = (rolling[:length] + codes[n - 1 :] + np.uint64(n)) * _MULTIPLIER
        rolling ^= rolling >> np.uint64(29)
        inside = owners[:length] == owners[n - 1 :]
        hashes.append((rolling[inside] >> np.uint64(64 - BITS)).astype(np.int64))
        places.append(owners[:length][inside])
    return np.concatenate(hashes), np.concatenate(places)


class QualityModel(NamedTuple):
    """Scores a text by the logistic function of `bias + sum of weights of its n-grams / sqrt(n)`.

    Attributes:
      weights: `[2 ** BITS]` float32, by hash.
      bias: the same for every text.
    """

    weights: np.ndarray
    bias: float

    def score(self, texts: Sequence[str]) -> np.ndarray:
        """Returns `[len(texts)]` float64 from 0 (bad) to 1 (like the main content of pages)."""
        hashes, places = hash_ngrams(texts)
        sums = np.bincount(places, self.weights[hashes], len(texts))
        sizes = np.bincount(places, minlength=len(texts))
        return 1 / (1 + np.exp(-self.bias - sums / np.sqrt(np.maximum(sizes, 1))))


def save(model: QualityModel, folder: str | os.PathLike[str], facts: dict) -> None:
    """Writes a model into a folder that exists; `facts` go into its `model.json`."""
    folder = Path(folder)
    np.savez_compressed(folder / WEIGHTS_FILE, weights=model.weights, bias=np.float64(model.bias))
    text = json.dumps({"features": FEATURES, **facts}, indent=2) + "\n"
    (folder / FACTS_FILE).write_text(text, encoding="utf-8")


def load(folder: str | os.PathLike[str]) -> QualityModel:
    """Reads a model that `save` wrote.

    Raises:
      InputError: if it is missing, damaged, or has other features than this version.
    """
    folder = Path(folder)
    try:
        facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        with np.load(folder / WEIGHTS_FILE, allow_pickle=False) as arrays:
            model = QualityModel(arrays["weights"], float(arrays["bias"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        remedy = "name a folder that `labse corpus train-quality` wrote"
        raise InputError(f"is not a quality model ({error})", path=folder, remedy=remedy) from error
    if facts.get("features") != FEATURES or model.weights.shape != (1 << BITS,):
        problem = "is a quality model of another version"
        raise InputError(problem, path=folder, remedy="train it again")
    return model
