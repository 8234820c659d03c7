"""Drops sentences that do not look like the main content of a web page, as was done for LaBSE."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

from beam_pipelines.filters import AtLeast, Option, Use
from beam_pipelines.records import Record, texts_of
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import MONOLINGUAL


class LowQuality(AtLeast):
    """Score: 0 to 1, by a model that `labse corpus train-quality` wrote.

    Raises:
      InputError: when built, if there is no such model, or the threshold is out of range.

    >>> import numpy, tempfile
    >>> from beam_pipelines import quality_model
    >>> weights = numpy.zeros(1 << quality_model.BITS, numpy.float32)
    >>> folder = tempfile.mkdtemp()
    >>> quality_model.save(quality_model.QualityModel(weights, bias=0.0), folder, {})
    >>> LowQuality(folder).score([Sentence("Sign up now | Log in", "en")])
    [0.5]
    """

    name = "low_quality"
    threshold = 0.5
    _option = Option("--min-quality", "with --quality: the least that stays, 0 to 1", "P")
    _help = "drop what this model of `train-quality` finds bad"
    _model_option = Option("--quality", _help, "MODEL", type=None)
    uses = {MONOLINGUAL: Use(200, _option, asked_by=_model_option)}

    def __init__(self, model: str | os.PathLike[str], threshold: float | None = None) -> None:
        super().__init__(threshold)
        if not 0 <= self.threshold <= 1:
            problem = f"--min-quality is {self.threshold}"
            raise InputError(problem, remedy="give a number from 0 to 1")
        from beam_pipelines.runtime.storage import absolute

        self.model_path = absolute(model)
        self._load()

    def _load(self) -> None:
        from beam_pipelines import quality_model
        from beam_pipelines.runtime.storage import local_copy

        self._model = quality_model.load(local_copy(self.model_path))

    def __getstate__(self) -> dict:
        # Workers read the model themselves: it is too large to pickle with every step.
        return {**self.__dict__, "_model": None}

    def score(self, records: Sequence[Record]) -> list[float]:
        import numpy as np

        if self._model is None:
            self._load()
        # The worse of neighbouring sentences.
        scores = [self._model.score(column) for column in zip(*map(texts_of, records), strict=True)]
        return functools.reduce(np.minimum, scores).tolist()
