"""The encoder protocol: any model that embeds sentences can be evaluated and used for mining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Encoder(Protocol):
    """What evaluation tasks and mining require of a model."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, rows of unit length, in the order of the texts."""
