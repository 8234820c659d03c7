"""The translator: the Model Garden's Transformer encoder-decoder, built from our configuration."""

from __future__ import annotations

import tensorflow as tf
from official.nlp.modeling.models import seq2seq_transformer

from labse_tf.systems.cds.config import TranslatorConfig


def build_translator(
    config: TranslatorConfig, vocab_size: int, **search
) -> seq2seq_transformer.Seq2SeqTransformer:
    """Returns a translator with its variables created.

    Called with `{"inputs": source, "targets": target}`, int32 `[batch, length]` each, padded with
    0, it returns the logits of each target token given those before it: float32 `[batch, target
    length, vocab_size]`. The target ends in [SEP] and has no start token: the model shifts it.

    Without targets, it translates by beam search: `search` has the Model Garden's options of it.
    """
    common = {
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "dropout_rate": config.dropout,
        "attention_dropout_rate": config.dropout,
        "intermediate_dropout": config.dropout,
    }
    translator = seq2seq_transformer.Seq2SeqTransformer(
        vocab_size=vocab_size,
        embedding_width=config.hidden_size,
        dropout_rate=config.dropout,
        encoder_layer=seq2seq_transformer.TransformerEncoder(
            num_layers=config.encoder_layers, **common
        ),
        decoder_layer=seq2seq_transformer.TransformerDecoder(
            num_layers=config.decoder_layers, **common
        ),
        **search,
    )
    translator({name: tf.ones((1, 4), tf.int32) for name in ("inputs", "targets")})
    return translator


def token_log_likelihoods(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns log P(target token | source, target tokens before it).

    Args:
      logits: float32 `[batch, length, vocab_size]`.
      targets: int32 `[batch, length]`, padded with 0.

    Returns:
      float32 `[batch, length]` in nats, 0 at padding.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return -losses * tf.cast(targets != 0, tf.float32)


def mean_log_likelihoods(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns log P(target | source) per target token, [SEP] included: float32 `[batch]`, in nats.

    Args:
      logits: float32 `[batch, length, vocab_size]`.
      targets: int32 `[batch, length]`, padded with 0; at least one token per row.
    """
    tokens = tf.reduce_sum(tf.cast(targets != 0, tf.float32), axis=1)
    return tf.reduce_sum(token_log_likelihoods(logits, targets), axis=1) / tokens
