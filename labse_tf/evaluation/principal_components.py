"""Removes the principal components of a language's vectors, which identify the language."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Bias(NamedTuple):
    """What a language's vectors share.

    Attributes:
      components: float32 `[count, dim]`.
      mean: `[dim]`; 0 if the components are of uncentred vectors.
    """

    components: np.ndarray
    mean: np.ndarray | float

    def first(self, count: int) -> Bias:
        """Returns the first components; with none of them, the mean stays in too."""
        return Bias(self.components[:count], self.mean if count else 0.0)

    def remove_from(self, vectors: np.ndarray) -> np.ndarray:
        """Returns unit vectors without it, `[n, dim]`."""
        return remove_components(vectors, self.components, self.mean)


def find_bias(vectors: np.ndarray, count: int, *, center: bool) -> Bias:
    """Returns `count` components of `[n, dim]` vectors, around their mean if `center`."""
    mean = vectors.mean(axis=0) if center else 0.0
    return Bias(principal_components(vectors - mean, count), mean)


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """Returns the principal directions of a language's vectors.

    They are the first right singular vectors of the uncentred matrix: the first one is close to the
    mean, which is most of what a language's vectors share (Yang et al. 2021, arXiv 2012.14388,
    section 5.1; after Arora, Liang and Ma 2017, who did this for English).

    Args:
      vectors: float `[n, dim]`.
      count: at most `dim` and n.

    Returns:
      float32 `[count, dim]`, orthonormal rows, in descending order of singular values.
    """
    if len(vectors) < vectors.shape[1]:
        directions = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)[2]
    else:
        # The size is dim x dim, however many vectors there are.
        products = vectors.T.astype(np.float64) @ vectors
        directions = np.linalg.eigh(products)[1].T[::-1]
    return directions[:count].astype(np.float32)


def remove_components(
    vectors: np.ndarray, components: np.ndarray, mean: np.ndarray | float = 0.0
) -> np.ndarray:
    """Returns the vectors without their projections on the components, scaled to unit length.

    Args:
      vectors: float32 `[n, dim]`.
      components: float32 `[count, dim]`, from `principal_components`.
      mean: `[dim]`, subtracted first: that of the vectors which the components are of, if these
        were centred. 0: they were not.

    Returns:
      float32 `[n, dim]`; a row with nothing left is zero.
    """
    centred = vectors - mean
    rest = centred - (centred @ components.T) @ components
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    # A remainder that is only rounding error has no direction.
    nothing = lengths < 1e-6
    return np.where(nothing, 0, rest / np.where(nothing, 1, lengths)).astype(np.float32)
