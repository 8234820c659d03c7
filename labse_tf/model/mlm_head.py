"""BERT's masked-language-model head, computed only at the masked positions."""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks

from labse_tf.config import ComputeConfig, EncoderConfig
from labse_tf.model.encoder import activation
from labse_tf.model.precision import precision


def build_mlm_head(
    config: EncoderConfig,
    encoder: networks.BertEncoderV2,
    *,
    compute: ComputeConfig | None = None,
) -> layers.MaskedLM:
    """Returns the head with its variables created.

    It maps `sequence_output` (`[batch, length, hidden_size]`) and `masked_positions` (`[batch, n]`
    int32) to logits `[batch, n, vocab_size]`: transform, layer norm, product with the encoder's
    embedding table, and a bias.
    """
    with precision(compute or ComputeConfig(precision="float32")):
        head = layers.MaskedLM(
            encoder.get_embedding_table(),
            activation=activation(config.activation),
            initializer=tf_keras.initializers.TruncatedNormal(stddev=config.initializer_range),
            name="mlm_head",
        )
        head(tf.zeros((1, 4, config.hidden_size)), tf.zeros((1, 1), tf.int32))
    return head


def trained_variables(*modules: tf.Module | None) -> list[tf.Variable]:
    """Returns the variables of all modules, each once: the head also lists the encoder's table."""
    found = (v for module in modules if module is not None for v in module.trainable_variables)
    return list({id(v): v for v in found}.values())


def transform_masked(head: layers.MaskedLM, sequence: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the vectors that the head multiplies by the table: `[batch * n, hidden_size]`.

    Args:
      head: see `build_mlm_head`.
      sequence: `[batch, length, hidden_size]`.
      positions: `[batch, n]` int32.
    """
    hidden = head.dense(tf.gather(sequence, positions, batch_dims=1))
    # The head's own call flattens all sequences into one axis; its norm was built for that.
    flat = tf.reshape(hidden, [-1, hidden.shape[-1]])
    return head.layer_norm(flat)
