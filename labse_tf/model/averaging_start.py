"""Initial weights for a dual encoder without pre-training: [CLS] averages its sentence."""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

# The average of n dissimilar vectors is 1 / sqrt(n) as long as each of them. The gain makes that of
# a typical sentence comparable to [CLS]'s own state.
_GAIN = 2.0
# Positions say little about meaning, but would be half of each token's embedding.
_POSITIONS = 0.1


def start_averaging(encoder: networks.BertEncoderV2) -> None:
    """Makes each layer add the average of all tokens to each token, including [CLS].

    In each attention layer, the value kernel becomes Q and the output kernel Q', with Q orthogonal,
    times a gain. With small random queries and keys, attention is nearly uniform. So embeddings
    differ between sentences from the first step, and gradients reach the words. With random values
    all sentences start out alike, and training must separate them before it can do more.

    Args:
      encoder: from `build_encoder`; position and type embeddings are scaled down, other weights
        stay unchanged.
    """
    for layer in encoder.transformer_layers:
        value, output = (
            _kernel(layer, f"/self_attention/{name}/kernel")
            for name in ("value", "attention_output")
        )
        width = output.shape[-1]
        rotation = tf_keras.initializers.Orthogonal(gain=_GAIN**0.5)((width, width))
        value.assign(tf.reshape(rotation, value.shape))
        output.assign(tf.reshape(tf.transpose(rotation), output.shape))
    for name in ("/position_embedding/", "/type_embeddings/"):
        table = _kernel(encoder, name)
        table.assign(_POSITIONS * table)


def _kernel(layer, name: str) -> tf.Variable:
    [variable] = [variable for variable in layer.variables if name in variable.name]
    return variable
