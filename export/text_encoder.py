"""The text encoder SavedModel: strings straight to unit vectors, for serving."""

from __future__ import annotations

import os

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

from labse_tf.tokenization import Tokenizer


class _PackToLongest(tf_keras.layers.Layer):
    """Packs tokens as the longest text of the batch needs it, up to a limit: little is padding."""

    def __init__(self, tokenizer: Tokenizer, length: int) -> None:
        super().__init__()
        self._tokenizer, self._length = tokenizer, length

    def call(self, tokens: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        tokens = tokens.merge_dims(1, 2)
        longest = tf.cast(tokens.bounding_shape(axis=1), tf.int32) + 2
        return self._tokenizer.pack([tokens], tf.minimum(longest, self._length))


def save_text_encoder(
    encoder: networks.BertEncoderV2,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    length: int,
) -> None:
    """Writes a model of TF Hub's text embeddings: `[batch]` strings -> `[batch, dim]` unit rows.

    Args:
      encoder: with its weights; they are trainable here too.
      tokenizer: whose vocabulary file becomes an asset.
      path: of the SavedModel.
      length: longer texts are cut to this many tokens, [CLS] and [SEP] included.
    """
    sentences = tf_keras.Input(shape=(), dtype=tf.string, name="sentences")
    packed = _PackToLongest(tokenizer, length)(tokenizer.layer(sentences))
    pooled = encoder(packed)["pooled_output"]
    vectors = tf_keras.layers.UnitNormalization(axis=-1)(pooled)
    model = tf_keras.Model(sentences, vectors, name="labse_text")

    @tf.function(input_signature=[sentences.type_spec])
    def serve(sentences):
        return {"default": model(sentences, training=False)}

    model.save(
        os.fspath(path),
        include_optimizer=False,
        save_format="tf",
        signatures={"serving_default": serve},
    )
