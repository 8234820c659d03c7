"""The type of vectors in memory or on disk."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class ArrayLike(Protocol):
    """Vectors `[n, dim]` in memory or on disk, whose slices are arrays."""

    shape: tuple[int, ...]

    def __getitem__(self, which: Any) -> np.ndarray: ...
