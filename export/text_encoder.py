"""The text encoder SavedModel: strings straight to unit vectors, for serving."""

from __future__ import annotations

import os

import tensorflow as tf
from official.nlp.modeling import networks

from labse_tf.model.dual_encoder import embed
from labse_tf.tokenization.protocol import Tokenizer


def save_text_encoder(
    encoder: networks.BertEncoderV2,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    length: int,
) -> None:
    """Writes a model of TF Hub's text embeddings: `[batch]` strings -> `[batch, dim]` unit rows.

    A batch is padded to its longest text: little is padding. `training=` switches dropout.

    Args:
      encoder: with its weights; they are trainable here too.
      tokenizer: whose vocabulary file becomes an asset.
      path: of the SavedModel.
      length: longer texts are cut to this many tokens, [CLS] and [SEP] included.
    """
    sentences = tf.TensorSpec((None,), tf.string, name="sentences")

    # Most of the graph: as a function of its own it is there once.
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

    # What TF Hub asks of a reusable SavedModel. Saved as a Keras model it would hold each layer's
    # functions too: four times the graph, and as long to load.
    model = tf.train.Checkpoint(tokenizer=tokenizer.layer)
    model.__call__ = encode
    for training in (False, True):
        encode.get_concrete_function(sentences, training=training)
    model.variables = encoder.variables
    model.trainable_variables = encoder.trainable_variables
    model.regularization_losses = []
    tf.saved_model.save(model, os.fspath(path), signatures={"serving_default": serve})
