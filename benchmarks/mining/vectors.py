"""Synthetic vectors for the mining benchmark, written in blocks.

A source and its target are the same point plus noise. The points are Gaussian, and the variances of
the directions fall as a power of their number, as with sentence embeddings; so there are no
clusters that would make the search easier than with text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labse_tf.progress import Progress

_ROWS_PER_BLOCK = 16384
# The variance of direction i is i ** -_DECAY.
_DECAY = 1.5
# Length of the noise of each side, as a share of the point's length.
_NOISE = 0.5
_SEED = 0


def write_mixture(folder: Path, count: int, dim: int) -> tuple[Path, Path]:
    """Writes `source.npy` and `target.npy`, float32 `[count, dim]`, unless they exist."""
    paths = folder / f"source-{count}-{dim}.npy", folder / f"target-{count}-{dim}.npy"
    if all(path.exists() for path in paths):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    # Blocks of targets and the rows in them are shuffled, so that files are written in order.
    blocks = -(-count // _ROWS_PER_BLOCK)
    order = np.random.default_rng(_SEED).permutation(blocks)
    for path, numbers, side in ((paths[0], range(blocks), 1), (paths[1], order, 2)):
        partial = path.with_suffix(".partial")
        array = np.lib.format.open_memmap(partial, "w+", np.float32, (count, dim))
        start = 0
        with Progress(path.stem, total=count, unit="vector") as progress:
            for rows in _blocks(numbers, count, dim, side):
                array[start : start + len(rows)] = rows
                start += len(rows)
                progress.update(len(rows))
        array.flush()
        del array
        partial.rename(path)
    return paths


def _blocks(numbers, count: int, dim: int, side: int) -> Iterator[np.ndarray]:
    spread = np.arange(1, dim + 1, dtype=np.float32) ** (-_DECAY / 2)
    for number in numbers:
        size = min(_ROWS_PER_BLOCK, count - number * _ROWS_PER_BLOCK)
        points = _gaussian((_SEED, 0, number), (size, dim)) * spread
        noise = _gaussian((_SEED, side, number), (size, dim)) * spread
        rows = points + _NOISE * noise
        if side == 2:
            rows = np.random.default_rng((_SEED, 3, number)).permutation(rows)
        yield rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _gaussian(seed: tuple[int, ...], shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)
