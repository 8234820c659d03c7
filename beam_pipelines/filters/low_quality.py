"""Drops sentences that do not look like the main content of a web page, as LaBSE's data."""

from __future__ import annotations

import os
from collections.abc import Sequence

from beam_pipelines.records.records import Sentence
from beam_pipelines.text import quality_model


class LowQuality:
    """Score: 0 to 1, of a model that `labse corpus train-quality` wrote.

    Raises:
      InputError: when built, if there is no such model.
    """

    name = "low_quality"

    def __init__(self, model: str | os.PathLike[str], threshold: float = 0.5) -> None:
        self.threshold = threshold
        # For the workers, who may have another working directory.
        self._path = os.path.abspath(model)
        self._model = quality_model.load(self._path)

    def __getstate__(self) -> dict:
        # Workers read the model themselves: it is too large to travel with every step.
        return {"threshold": self.threshold, "_path": self._path, "_model": None}

    def score(self, records: Sequence[Sentence]) -> list[float]:
        if self._model is None:
            self._model = quality_model.load(self._path)
        return self._model.score([record.text for record in records]).tolist()

    def accept(self, score: float) -> bool:
        return score >= self.threshold
