"""Slots: vectors made of a sentence embedding, beside the tokens of its neighbour (CMLM)."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import ComputeConfig, EncoderConfig
from labse_tf.model.encoder import BertEncoder, activation
from labse_tf.model.precision import precision
from labse_tf.model.protocol import INPUT_NAMES, POSITIONS

_TYPE = 1  # Tokens have type 0.


class Slots(tf_keras.layers.Layer):
    """Projects a sentence vector v to N slots (Yang et al. 2021, section 3).

    The first slot is v itself; the others come from a multi-layer perceptron of three layers, whose
    last one is linear. Dropped after training.
    """

    def __init__(self, count: int, config: EncoderConfig) -> None:
        """Makes the layers.

        Args:
          count: N, at least 1.
          config: its width, activation and initial range.
        """
        super().__init__(name="slots")
        self.count, self._width = count, config.hidden_size
        dense = {
            "kernel_initializer": tf_keras.initializers.TruncatedNormal(
                stddev=config.initializer_range
            )
        }
        hidden = {**dense, "activation": activation(config.activation)}
        self._layers = []
        if count > 1:
            self._layers = [
                tf_keras.layers.Dense(self._width, name="hidden_1", **hidden),
                tf_keras.layers.Dense(self._width, name="hidden_2", **hidden),
                tf_keras.layers.Dense((count - 1) * self._width, name="slots", **dense),
            ]

    def call(self, vectors: tf.Tensor) -> tf.Tensor:
        """Maps `[batch, width]` to `[batch, N, width]`."""
        first = vectors[:, tf.newaxis]
        if self.count == 1:
            return first
        rest = vectors
        for layer in self._layers:
            rest = layer(rest)
        rest = tf.reshape(rest, [-1, self.count - 1, self._width])
        return tf.concat([first, rest], axis=1)


def build_slots(
    count: int, config: EncoderConfig, *, compute: ComputeConfig | None = None
) -> Slots | None:
    """Returns slots with their variables created; None if `count` is 0."""
    if not count:
        return None
    with precision(compute or ComputeConfig(precision="float32")):
        slots = Slots(count, config)
        slots(tf.zeros((1, config.hidden_size)))
    return slots


def token_states(
    encoder: BertEncoder, batch: dict, *, slots: Slots | None = None, training: bool
) -> tf.Tensor:
    """Returns `sequence_output` of a masked batch: `[batch, length (+ N), width]`.

    Args:
      encoder: any of `build_encoder` with layers.
      batch: MASKED_FEATURES, and POSITIONS if sequences have several texts; with `slots`,
        NEIGHBOUR_FEATURES.
      slots: the tokens attend to these too, made of the embedding of `neighbour`. Behind them, so
        that the tokens keep their positions.
      training: whether dropout is on.
    """
    inputs = {name: batch[name] for name in (*INPUT_NAMES, POSITIONS) if name in batch}
    if slots is not None:
        # The embedding as it will be exported, before it is scaled to unit length.
        vectors = encoder(batch["neighbour"], training=training)["pooled_output"]
        inputs["dense_inputs"] = slots(vectors)
        inputs["dense_mask"] = tf.ones(tf.shape(inputs["dense_inputs"])[:2], tf.int32)
        inputs["dense_type_ids"] = _TYPE * inputs["dense_mask"]
    return encoder(inputs, training=training)["sequence_output"]
