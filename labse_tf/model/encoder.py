"""The BERT encoder: the Model Garden's, built from our configuration."""

from __future__ import annotations

import contextlib

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

from labse_tf.config import ComputeConfig, EncoderConfig
from labse_tf.model.averaging_start import start_averaging
from labse_tf.model.dropout import replayable_dropout
from labse_tf.model.precision import precision

TYPE_VOCAB_SIZE = 2


def _gelu_tanh(x: tf.Tensor) -> tf.Tensor:
    return tf_keras.activations.gelu(x, approximate=True)


_ACTIVATIONS = {"gelu_tanh": _gelu_tanh, "gelu": tf_keras.activations.gelu}


def activation(name: str):
    """Returns the function called `name`, one of `labse_tf.config.ACTIVATIONS`."""
    return _ACTIVATIONS[name]


def build_encoder(
    config: EncoderConfig,
    *,
    num_layers: int | None = None,
    compute: ComputeConfig | None = None,
    replayable: bool = False,
    embedding_layer: tf_keras.layers.Layer | None = None,
) -> networks.BertEncoderV2:
    """Returns an encoder with its variables made.

    Called with int32 `[batch, length]` tensors `input_word_ids`, `input_mask` and `input_type_ids`,
    it gives `pooled_output` (`tanh(dense([CLS]))`, `[batch, hidden_size]`), `sequence_output`
    (`[batch, length, hidden_size]`) and `encoder_outputs` (a list of such, one a layer).

    Args:
      config: its sizes; `vocab_size` must be set.
      num_layers: of a stage that has fewer layers than `config` says.
      compute: its precision and compilation; float32 and none, if left out.
      replayable: make it with `replayable_dropout`.
      embedding_layer: to look tokens up, instead of a table of float32.
    """
    compute = compute or ComputeConfig(precision="float32")
    with precision(compute), replayable_dropout() if replayable else contextlib.nullcontext():
        layers = config.num_layers if num_layers is None else num_layers
        encoder = _build(config, layers, embedding_layer)
        # It has no variables before its first call: an optimiser built on it would train nothing.
        encoder({name: tf.zeros((1, 4), tf.int32) for name in encoder.inputs})
    if config.averaging_start:
        start_averaging(encoder)
    if compute.xla:
        # Each layer by itself: the embedding's gradient stays sparse, and what replicas exchange
        # stays outside.
        for layer in encoder.transformer_layers:
            layer.call = tf.function(layer.call, jit_compile=True)
    return encoder


def _build(config: EncoderConfig, num_layers: int, embedding_layer) -> networks.BertEncoderV2:
    return networks.BertEncoderV2(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_layers=num_layers,
        num_attention_heads=config.num_attention_heads,
        inner_dim=config.intermediate_size,
        max_sequence_length=config.max_positions,
        type_vocab_size=TYPE_VOCAB_SIZE,
        inner_activation=activation(config.activation),
        output_dropout=config.dropout,
        attention_dropout=config.dropout,
        initializer=tf_keras.initializers.TruncatedNormal(stddev=config.initializer_range),
        embedding_layer=embedding_layer,
        name="encoder",
    )
