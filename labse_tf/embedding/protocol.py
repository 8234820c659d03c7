"""The encoder protocol: any model that can embed sentences can be evaluated, and mine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Encoder(Protocol):
    """What tasks and mining ask of a model."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, rows of unit length, in the order of the texts."""
