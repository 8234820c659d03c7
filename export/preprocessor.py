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
    pack, packer = _packing(tokenizer, length)
    model = tf_keras.Model(sentences, pack(tokens), name="preprocessor")
    model.tokenize = tf_keras.Model(sentences, tokens)
    special_tokens = tf.train.Checkpoint()
    special_tokens.__call__ = tf.function(lambda: tokenizer.special_tokens, input_signature=[])
    model.tokenize.get_special_tokens_dict = special_tokens
    model.bert_pack_inputs = packer
    return model


def _packing(tokenizer: Tokenizer, length: int):
    """Returns a layer that packs tokens, and a callable with the interface of TF Hub."""
    if "start_of_sequence_id" in tokenizer.special_tokens:
        pack = layers.BertPackInputs(length, special_tokens_dict=tokenizer.special_tokens)
        return pack, export_tfhub_lib.BertPackInputsSavedModelWrapper(pack)

    @tf.function(autograph=False)
    def call(inputs, seq_length=length):
        segments = inputs if isinstance(inputs, list | tuple) else [inputs]
        # Words are of no interest here.
        segments = [one.merge_dims(1, -1) if one.shape.rank > 2 else one for one in segments]
        return tokenizer.pack(segments, seq_length)

    for rank in (2, 3):
        for count in (1, 2):
            segments = [tf.RaggedTensorSpec([None] * rank, tf.int32) for _ in range(count)]
            call.get_concrete_function(segments, seq_length=tf.TensorSpec([], tf.int32))
    packer = tf.train.Checkpoint()
    packer.__call__ = call
    return _Pack(tokenizer, length), packer


class _Pack(tf_keras.layers.Layer):
    def __init__(self, tokenizer: Tokenizer, length: int) -> None:
        super().__init__(name="pack", dtype="int32")
        self._pack, self._length = tokenizer.pack, length

    def call(self, tokens: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        return self._pack([tokens.merge_dims(1, 2)], self._length)
