"""A LiteRT (TensorFlow Lite) file of the encoder: weights in int8, activations in float32."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from official.nlp.modeling import networks

from export.source import Source
from export.transforms import LEAST_COSINE, least_cosine, pack_table
from labse_tf.embedding.model_dir import LiteRuntime

LITE_FILE = Path("lite", "encoder_int8.tflite")
# The most float32 weights: the converter's protocol buffer, at most 2 GiB, holds more than these.
MOST_BYTES = 2_100_000_000

_log = logging.getLogger("labse")


def save_lite(
    source: Source, folder: Path, *, inputs: Mapping[str, tf.Tensor], vectors: np.ndarray
) -> None:
    """Writes `folder`/lite/encoder_int8.tflite, dynamic-range quantised.

    Its signature `serving_default` takes the encoder's three inputs, int32 `[batch, length]`, and
    returns `default`, float32 `[batch, dim]`, not normalised.

    LiteRT rounds the activations that it multiplies by int8 weights, as ONNX Runtime does (see
    `save_onnx`), and gives the table a single scale. Where the vectors do not bear that, the table
    is in int8 with a scale per column, and the other weights are in float16.

    Int8 is judged by the `vectors`, `[n, dim]`, that the encoder makes of `inputs`.
    """
    file = folder / LITE_FILE
    file.parent.mkdir()
    file.write_bytes(_convert(source.encoder))
    if least_cosine(LiteRuntime(file).run(inputs), vectors) < LEAST_COSINE:
        _log.info("LiteRT: only the embedding table in int8, as the activations do not bear it")
        packed = pack_table(source, "int8", by_column=True)
        file.write_bytes(_convert(packed.encoder, [tf.float16]))


def _convert(encoder: networks.BertEncoderV2, types: Sequence[tf.DType] = ()) -> bytes:
    """Returns the encoder as a file, its weights in int8 or in one of `types`."""
    names = sorted(encoder.inputs)

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32, name) for name in names])
    def embed(input_mask, input_type_ids, input_word_ids):
        inputs = dict(zip(names, (input_mask, input_type_ids, input_word_ids), strict=True))
        return {"default": encoder(inputs, training=False)["pooled_output"]}

    function = embed.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], encoder)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_types = list(types)
    return converter.convert()
