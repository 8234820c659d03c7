"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the preprocessor's ops.

from labse_tf.embedding.model_dir import LASER_2018, NO_LANGUAGE, ModelDir
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import SortingEncoder
from labse_tf.errors import InputError
from labse_tf.registry import find


class Embedder(SortingEncoder):
    """A loaded model dir."""

    def __init__(self, model_dir: ModelDir, *, language: str | None = None) -> None:
        """Loads the preprocessor and an encoder.

        Args:
          model_dir: from `ModelDir.open`.
          language: as for `labse_tf.load`.

        Raises:
          InputError: as `labse_tf.load`, or if the encoder cannot be read.
        """
        self._preprocessor = _open_preprocessor(model_dir, language)
        self._runtime = open_runtime(model_dir.encoder)
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
        self._special_tokens = int(packed["input_mask"].numpy().sum())
        self.dim = self._runtime.run(packed).shape[1]
        if model_dir.num_layers == 0:
            self._has_no_layers()

    def count_weights(self) -> int | None:
        """Returns the encoder's number of weights; None if its format does not provide it."""
        return self._runtime.count_weights()

    def _tokenize(self, texts: Sequence[str]) -> tf.RaggedTensor:
        return self._preprocessor.tokenize(tf.constant(texts)).merge_dims(1, 2)

    def _embed(self, tokens: tf.RaggedTensor, rows: np.ndarray, length: int) -> np.ndarray:
        some = [tf.gather(tokens, rows)]
        packed = self._preprocessor.bert_pack_inputs(some, seq_length=tf.constant(length))
        return self._runtime.run(packed)


def _open_preprocessor(model_dir: ModelDir, language: str | None):
    """Returns a model dir's SavedModel, or the Python object that stands in for it."""
    if model_dir.is_laser_2018:
        length = model_dir.facts["sequence_length"]
        open_preprocessor = find("PREPROCESSORS", LASER_2018)
        return open_preprocessor(model_dir.path, length=length, language=language)
    if language is not None:
        raise InputError(NO_LANGUAGE, path=model_dir.path, remedy="leave the language out")
    return tf.saved_model.load(str(model_dir.path / "preprocessor"))
