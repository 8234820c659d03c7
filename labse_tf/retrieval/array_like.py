"""The type of vectors wherever they are."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class ArrayLike(Protocol):
    """Vectors in memory or on disk: `[n, dim]`, whose slices are arrays."""

    shape: tuple[int, ...]

    def __getitem__(self, which: Any) -> np.ndarray: ...
