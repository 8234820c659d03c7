"""A LiteRT (TensorFlow Lite) file of the encoder: weights in int8, activations in float32."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from official.nlp.modeling import networks

LITE_FILE = Path("lite", "encoder_int8.tflite")
# Of float32 weights: the converter's protocol buffer, which has more than these, has at most 2 GiB.
MOST_BYTES = 2_100_000_000


def save_lite(encoder: networks.BertEncoderV2, folder: Path) -> None:
    """Writes `folder`/lite/encoder_int8.tflite, dynamic-range quantised.

    Its signature `serving_default` takes the encoder's three inputs, int32 `[batch, length]`, and
    returns `default`, float32 `[batch, dim]`, not normalised.
    """

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None), tf.int32, name=name) for name in sorted(encoder.inputs)
        ]
    )
    def embed(input_mask, input_type_ids, input_word_ids):
        inputs = {
            "input_mask": input_mask,
            "input_type_ids": input_type_ids,
            "input_word_ids": input_word_ids,
        }
        return {"default": encoder(inputs, training=False)["pooled_output"]}

    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [embed.get_concrete_function()], encoder
    )
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    (folder / LITE_FILE).parent.mkdir()
    (folder / LITE_FILE).write_bytes(converter.convert())
