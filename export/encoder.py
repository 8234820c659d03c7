"""The encoder SavedModel: encoder inputs to embeddings, with the TF-Hub interface."""

from __future__ import annotations

import os

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks

# The outputs of the signature. Those of all layers would be megabytes per sentence for servers.
_SERVED = ("default", "pooled_output", "sequence_output")


def save_encoder(
    encoder: networks.BertEncoderV2,
    path: str | os.PathLike[str],
    *,
    vocab_file: str | os.PathLike[str],
    head: layers.MaskedLM | None = None,
) -> None:
    """Writes a drop-in replacement for `google/LaBSE/2`.

    `default` is the pooler's output (`tanh(dense([CLS]))`). As in LaBSE/2, it is not normalised:
    callers normalise it.

    Args:
      encoder: from `build_encoder`, with its dropout rates; `training=` turns dropout on and off.
      path: of the SavedModel.
      vocab_file: becomes the asset `vocab_file`.
      head: becomes `mlm`, called on the encoder's inputs and int32 `masked_lm_positions`
        `[batch, n]`, with `mlm_logits` `[batch, n, vocab_size]` among its outputs.
    """
    inputs = {
        name: tf_keras.Input(shape=(None,), dtype=tf.int32, name=name) for name in encoder.inputs
    }
    outputs = encoder(inputs)
    outputs["default"] = outputs["pooled_output"]
    model = tf_keras.Model(inputs, outputs, name="labse")
    model.vocab_file = tf.saved_model.Asset(os.fspath(vocab_file))
    model.do_lower_case = tf.Variable(False, trainable=False)
    if head is not None:
        # Otherwise the head's weights would be trained and saved as the encoder's own.
        model._auto_track_sub_layers = False
        model.mlm = _with_head(encoder, head, inputs)

    @tf.function(input_signature=[{name: x.type_spec for name, x in inputs.items()}])
    def serve(inputs):
        served = model(inputs, training=False)
        return {name: served[name] for name in _SERVED}

    # Without signatures Keras would number the outputs.
    model.save(
        os.fspath(path),
        include_optimizer=False,
        save_format="tf",
        signatures={"serving_default": serve},
    )


def _with_head(encoder, head: layers.MaskedLM, inputs: dict) -> tf_keras.Model:
    positions = tf_keras.Input(shape=(None,), dtype=tf.int32, name="masked_lm_positions")
    outputs = encoder(inputs)
    outputs["mlm_logits"] = head(outputs["sequence_output"], positions)
    return tf_keras.Model({**inputs, "masked_lm_positions": positions}, outputs, name="mlm")
