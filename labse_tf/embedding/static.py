"""Embeds text with a model dir without layers: averages of its table's rows, without padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from labse_tf.embedding.model_dir import ModelDir
from labse_tf.embedding.windows import WindowEncoder
from labse_tf.progress import Progress
from labse_tf.tokenization.open import open_tokenizer


class StaticEmbedder(WindowEncoder):
    """A loaded model dir whose encoder has no layers and a table of float32.

    It gives the vectors of `Embedder` several times as fast: it reads the table itself in place of
    padded batches, and tokenises with the fast tokeniser, which the preprocessor does not have.
    """

    # Enough for the cost of a call to vanish.
    _texts_per_window = 4096

    def __init__(self, model_dir: ModelDir) -> None:
        """Reads the table and the vocabulary.

        Args:
          model_dir: one that `has_plain_table`.
        """
        self.sequence_length = model_dir.facts["sequence_length"]
        self._tokenizer = open_tokenizer(
            model_dir.encoder / "assets" / "vocab.txt",
            max_bytes_per_word=model_dir.facts["max_bytes_per_word"],
        )
        # As a tensor: TensorFlow may copy a whole variable at each read.
        table = self._table = _read_table(model_dir.encoder / "variables" / "variables")
        self.dim = table.shape[1]
        special = self._tokenizer.special_tokens
        ends = [special["start_of_sequence_id"], special["end_of_segment_id"]]

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1)])
        def average(tokens: tf.RaggedTensor) -> tf.Tensor:
            tokens = tokens[:, : self.sequence_length - 2]
            count = tokens.nrows(tf.int32)
            # Unit length makes averages of sums.
            sums = tf.sparse.segment_sum(
                table, tokens.values, tokens.value_rowids(), num_segments=count
            )
            nothing = tf.reduce_sum(tf.gather(table, ends), axis=0)
            empty = tokens.row_lengths() == 0
            return tf.math.l2_normalize(tf.where(empty[:, tf.newaxis], nothing, sums), axis=1)

        self._average = average

    def count_weights(self) -> int:
        """Returns the number of weights of the table."""
        return math.prod(self._table.shape)

    def _tokenize(self, texts: Sequence[str]) -> tf.RaggedTensor:
        return self._tokenizer(tf.constant(texts))

    def _encode_window(
        self, tokens: tf.RaggedTensor, vectors: np.ndarray, progress: Progress | None
    ) -> None:
        vectors[:] = self._average(tokens).numpy()
        if progress:
            progress.update(len(vectors))


def _read_table(variables: Path) -> tf.Tensor:
    """Returns the only matrix among the variables of a SavedModel."""
    reader = tf.train.load_checkpoint(str(variables))
    shapes = reader.get_variable_to_shape_map()
    (name,) = (name for name, shape in shapes.items() if len(shape) == 2)
    return tf.constant(reader.get_tensor(name))
