"""Where a dual encoder without pre-training starts well: [CLS] is the average of its sentence."""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

# An average of n unlike vectors is 1 / sqrt(n) as long as they are; so that of an everyday sentence
# keeps up with [CLS]'s own state.
_GAIN = 2.0
# Positions say little of the meaning, and would be half of each token's embedding.
_POSITIONS = 0.1


def start_averaging(encoder: networks.BertEncoderV2) -> None:
    """Makes each layer add the average of all tokens to each token, [CLS] among them.

    In each attention the values become Q and the output Q', with Q orthogonal, times a gain.
    Queries and keys, small at random, attend to all tokens nearly alike. So from the first step on
    the embedding tells sentences apart, and what the loss says reaches the words. With values at
    random all sentences are alike at first, and training has to part them before it can do more.

    Args:
      encoder: from `build_encoder`; its other weights stay as they are.
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
