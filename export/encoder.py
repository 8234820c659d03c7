"""The encoder SavedModel: encoder inputs to embeddings, with the TF-Hub interface."""

from __future__ import annotations

import os

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks


def save_encoder(
    encoder: networks.BertEncoderV2,
    path: str | os.PathLike[str],
    *,
    vocab_file: str | os.PathLike[str],
) -> None:
    """Writes a drop-in for `google/LaBSE/2`.

    `default` is the pooler's output (`tanh(dense([CLS]))`), not normalised, as in LaBSE/2: whoever
    uses it normalises it.

    Args:
      encoder: from `build_encoder`, with its dropout rates: `training=` switches them.
      path: of the SavedModel.
      vocab_file: becomes the asset `vocab_file`.
    """
    inputs = {
        name: tf_keras.Input(shape=(None,), dtype=tf.int32, name=name) for name in encoder.inputs
    }
    outputs = encoder(inputs)
    outputs["default"] = outputs["pooled_output"]
    model = tf_keras.Model(inputs, outputs, name="labse")
    model.vocab_file = tf.saved_model.Asset(os.fspath(vocab_file))
    model.do_lower_case = tf.Variable(False, trainable=False)
    model.save(os.fspath(path), include_optimizer=False, save_format="tf")
