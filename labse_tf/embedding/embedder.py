"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the preprocessor's ops.

from labse_tf.embedding.model_dir import (
    LASER_2018,
    NO_LANGUAGE,
    describe,
    find_model_dir,
    is_laser_2018,
    num_layers,
)
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import SortingEncoder
from labse_tf.errors import InputError
from labse_tf.registry import find


class Embedder(SortingEncoder):
    """A loaded model dir."""

    def __init__(self, path: str | os.PathLike[str], *, language: str | None = None) -> None:
        """Loads the preprocessor and an encoder.

        Args:
          path: a model dir, for its `encoder`; or an encoder file in it, such as
            MODEL_DIR/onnx/model_int8.onnx or MODEL_DIR/lite/encoder_int8.tflite.
          language: as for `labse_tf.load`.

        Raises:
          InputError: if it is not a model dir, or the file is not an encoder in one, or as
            `labse_tf.load`.
        """
        model_dir, encoder = find_model_dir(path)
        self._preprocessor = _open_preprocessor(model_dir, language)
        self._runtime = open_runtime(encoder)
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
        self._special_tokens = int(packed["input_mask"].numpy().sum())
        self.dim = self._runtime.run(packed).shape[1]
        if num_layers(model_dir) == 0:
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


def _open_preprocessor(model_dir: Path, language: str | None):
    """Returns a model dir's SavedModel, or the Python object that stands in for it."""
    if is_laser_2018(model_dir):
        length = describe(model_dir)["sequence_length"]
        open_preprocessor = find("PREPROCESSORS", LASER_2018)
        return open_preprocessor(model_dir, length=length, language=language)
    if language is not None:
        raise InputError(NO_LANGUAGE, path=model_dir, remedy="leave the language out")
    return tf.saved_model.load(str(model_dir / "preprocessor"))
