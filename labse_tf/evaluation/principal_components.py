"""Takes out of a language's vectors what they have in common, which tells the language."""

from __future__ import annotations

import numpy as np


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """Returns the directions in which a language's vectors are longest.

    They are the first right singular vectors of the matrix as it is, not centred: the first one is
    nearly the mean, which is most of what a language's vectors share (Yang et al. 2021, arXiv
    2012.14388, section 5.1; after Arora, Liang and Ma 2017, who did so for English).

    Args:
      vectors: float `[n, dim]`.
      count: at most `dim` and n.

    Returns:
      float32 `[count, dim]`, unit rows at right angles to each other, the longest direction first.
    """
    if len(vectors) < vectors.shape[1]:
        directions = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)[2]
    else:
        # Of dim x dim, however many vectors there are.
        products = vectors.T.astype(np.float64) @ vectors
        directions = np.linalg.eigh(products)[1].T[::-1]
    return directions[:count].astype(np.float32)


def remove_components(vectors: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Returns the vectors without their parts along the components, scaled to unit length.

    Args:
      vectors: float32 `[n, dim]`.
      components: float32 `[count, dim]`, as `principal_components` returns them.

    Returns:
      float32 `[n, dim]`; a row of which nothing is left is zeros.
    """
    rest = vectors - (vectors @ components.T) @ components
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    # What rounding leaves has no direction.
    nothing = lengths < 1e-6
    return np.where(nothing, 0, rest / np.where(nothing, 1, lengths)).astype(np.float32)
