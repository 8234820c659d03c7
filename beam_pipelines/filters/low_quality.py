"""Drops sentences that do not look like the main content of a web page, as was done for LaBSE."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from beam_pipelines.filters import Option, Use
from beam_pipelines.records.records import Record, texts_of
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import MONOLINGUAL

if TYPE_CHECKING:
    from beam_pipelines.text.quality_model import QualityModel


class LowQuality:
    """Score: 0 to 1, by a model that `labse corpus train-quality` wrote.

    Raises:
      InputError: when built, if there is no such model, or the threshold is out of range.

    >>> import numpy, tempfile
    >>> from beam_pipelines.records.records import Sentence
    >>> from beam_pipelines.text import quality_model
    >>> from beam_pipelines.text.quality_model import BITS
    >>> folder = tempfile.mkdtemp()
    >>> knows_nothing = quality_model.QualityModel(numpy.zeros(1 << BITS, numpy.float32), bias=0.0)
    >>> quality_model.save(knows_nothing, folder, {})
    >>> LowQuality(folder).score([Sentence("Sign up now | Log in", "en")])
    [0.5]
    """

    name = "low_quality"
    uses = {
        MONOLINGUAL: Use(
            order=200,
            asked_by=Option(
                "--quality", "drop what this model of `train-quality` finds bad", "MODEL", type=None
            ),
            threshold=Option("--min-quality", "with --quality: the least that stays, 0 to 1", "P"),
        )
    }

    def __init__(self, model: str | os.PathLike[str], threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise InputError(f"--min-quality is {threshold}", remedy="give a number from 0 to 1")
        self.threshold = threshold
        from beam_pipelines.runtime.storage import absolute

        self.model_path = absolute(model)
        self._model = _load(self.model_path)

    def __getstate__(self) -> dict:
        # Workers read the model themselves: it is too large to pickle with every step.
        return {"threshold": self.threshold, "model_path": self.model_path, "_model": None}

    def score(self, records: Sequence[Record]) -> list[float]:
        if self._model is None:
            self._model = _load(self.model_path)
        import numpy as np

        # Of neighbouring sentences, the worse.
        scores = [self._model.score(column) for column in zip(*map(texts_of, records), strict=True)]
        return functools.reduce(np.minimum, scores).tolist()

    def accept(self, score: float) -> bool:
        return score >= self.threshold


def _load(path: str) -> QualityModel:
    from beam_pipelines.runtime.storage import local_copy
    from beam_pipelines.text import quality_model

    return quality_model.load(local_copy(path))
