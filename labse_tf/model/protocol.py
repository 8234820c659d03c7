"""The interface of encoder networks that training needs."""

from __future__ import annotations

from typing import Protocol

import tensorflow as tf
import tf_keras

INPUT_NAMES = ("input_word_ids", "input_mask", "input_type_ids")
# Only for BERT, if a sequence has several texts.
POSITIONS = "input_positions"


def symbolic_inputs() -> dict[str, tf_keras.KerasTensor]:
    """Returns int32 `[batch, length]` Keras inputs by their names, for `EncoderNetwork.inputs`."""
    return {name: tf_keras.Input((None,), dtype=tf.int32, name=name) for name in INPUT_NAMES}


class EncoderNetwork(Protocol):
    """A network that maps the output of `Tokenizer.pack` to sentence vectors.

    Its variables exist once it is built. Attributes as in `tf_keras.Model`.
    """

    name: str
    variables: list[tf.Variable]
    trainable_variables: list[tf.Variable]

    def __call__(
        self, inputs: dict[str, tf.Tensor], training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns at least `pooled_output`, `[batch, dim]`, not normalised.

        `inputs` are ENCODER_INPUTS, int32 `[batch, length]`.
        """

    def get_embedding_table(self) -> tf.Variable:
        """Returns the embedding table of the tokens: `[rows, row dim]`."""

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns int32 `[batch, n]`: the rows of the table that these inputs read.

        The optimiser updates only these rows.
        """
