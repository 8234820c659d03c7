"""The text encoder SavedModel: strings straight to unit vectors, for serving."""

from __future__ import annotations

import os

import tensorflow as tf
from official.nlp.modeling import networks

from labse_tf.model.encoder import embed
from labse_tf.tokenization.protocol import Tokenizer


def save_text_encoder(
    encoder: networks.BertEncoderV2,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    length: int,
) -> None:
    """Writes a text embedding model for TF Hub: `[batch]` strings -> `[batch, dim]` unit rows.

    A batch is padded only to its longest text. `training=` turns dropout on and off.

    Args:
      encoder: with its weights, which are trainable here too.
      tokenizer: its vocabulary file becomes an asset.
      path: of the SavedModel.
      length: longer texts are truncated to this many tokens, including [CLS] and [SEP].
    """
    sentences = tf.TensorSpec((None,), tf.string, name="sentences")

    # Most of the graph; as a separate function it is stored only once.
    tokenize = tf.function(tokenizer.__call__, input_signature=[sentences], autograph=False)

    @tf.function(autograph=False)
    def encode(sentences, training=False):
        tokens = tokenize(sentences)
        longest = tf.cast(tokens.bounding_shape(axis=1), tf.int32) + 2
        inputs = tokenizer.pack([tokens], tf.minimum(longest, length))
        return embed(encoder, inputs, training=training)

    @tf.function(input_signature=[sentences], autograph=False)
    def serve(sentences):
        return {"default": encode(sentences)}

    # The attributes that TF Hub requires of a reusable SavedModel. A Keras model would also save
    # each layer's functions: four times the graph, and four times as long to load.
    model = tf.train.Checkpoint(tokenizer=tokenizer.layer)
    model.__call__ = encode
    for training in (False, True):
        encode.get_concrete_function(sentences, training=training)
    model.variables = encoder.variables
    model.trainable_variables = encoder.trainable_variables
    model.regularization_losses = []
    tf.saved_model.save(model, os.fspath(path), signatures={"serving_default": serve})
