"""The dual encoder: one encoder, shared by both sides (LaBSE, figure 1)."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.model.protocol import EncoderNetwork


def embed(encoder: EncoderNetwork, inputs: dict[str, tf.Tensor], *, training: bool) -> tf.Tensor:
    """Returns the sentence embeddings: the pooler's output over [CLS], scaled to unit length.

    Args:
      encoder: any encoder network.
      inputs: int32 `[batch, length]` tensors as `Tokenizer.pack` returns them.
      training: whether dropout is on.

    Returns:
      `[batch, dim]` float32 tensor of unit rows.
    """
    pooled = encoder(inputs, training=training)["pooled_output"]
    return tf.math.l2_normalize(tf.cast(pooled, tf.float32), axis=-1)
