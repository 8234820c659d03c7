"""The preprocessor SavedModel: strings to encoder inputs, with the TF-Hub interface."""

from __future__ import annotations

import os

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers
from official.nlp.tools import export_tfhub_lib

from labse_tf.tokenization.protocol import Tokenizer


def save_preprocessor(tokenizer: Tokenizer, path: str | os.PathLike[str], *, length: int) -> None:
    """Writes a replacement for `google/universal-sentence-encoder-cmlm/multilingual-preprocess/2`.

    Args:
      tokenizer: its vocabulary file becomes an asset.
      path: of the SavedModel.
      length: static length of the preprocessor's output when it is called, tokens.
    """
    # With assert ops the preprocessor could not run in TPU input pipelines. The Model Garden's
    # exporter omits them in the same way, but none of its public functions takes our byte limit
    # per word.
    with export_tfhub_lib._maybe_disable_assert(True):
        model = _build(tokenizer, length)

        @tf.function(input_signature=[model.input.type_spec])
        def serve(sentences):
            return model(sentences)

        # Without signatures Keras would number the outputs.
        model.save(
            os.fspath(path),
            include_optimizer=False,
            save_format="tf",
            signatures={"serving_default": serve},
        )
    export_tfhub_lib._check_no_assert(os.fspath(path))


def _build(tokenizer: Tokenizer, length: int) -> tf_keras.Model:
    sentences = tf_keras.Input(shape=(), dtype=tf.string, name="sentences")
    tokens = tokenizer.layer(sentences)
    pack = layers.BertPackInputs(length, special_tokens_dict=tokenizer.special_tokens)
    model = tf_keras.Model(sentences, pack(tokens), name="preprocessor")
    model.tokenize = tf_keras.Model(sentences, tokens)
    special_tokens = tf.train.Checkpoint()
    special_tokens.__call__ = tf.function(lambda: tokenizer.special_tokens, input_signature=[])
    model.tokenize.get_special_tokens_dict = special_tokens
    model.bert_pack_inputs = export_tfhub_lib.BertPackInputsSavedModelWrapper(pack)
    return model
