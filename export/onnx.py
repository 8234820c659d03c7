"""ONNX files of the encoder, named as Hugging Face's exporters name theirs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import tensorflow as tf
from official.nlp.modeling import networks

from export.source import Source
from labse_tf.model.encoder import build_encoder

ONNX_FILE, INT8_FILE = Path("onnx", "model.onnx"), Path("onnx", "model_int8.onnx")
# A protocol buffer cannot pass 2 GiB: past this, weights are beside it in NAME.onnx_data.
MOST_BYTES = 2_000_000_000

_OPSET = 17
_NAMES = {
    "input_word_ids": "input_ids",
    "input_mask": "attention_mask",
    "input_type_ids": "token_type_ids",
}


def save_onnx(source: Source, folder: Path) -> None:
    """Writes `folder`/onnx/model.onnx, in float32, and model_int8.onnx: weights in int8.

    Inputs `input_ids`, `attention_mask`, `token_type_ids`: int64 `[batch, length]`. Outputs
    `default`, float32 `[batch, dim]`, not normalised, and `last_hidden_state`.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # The converter copies weights many times over: most of them, the table, it does not see.
    config = source.config
    rows = 1 + max(config.hidden_size, config.intermediate_size, config.max_positions)
    model = _convert(_with_few_rows(source, rows))
    _replace_table(model, rows, source.encoder.get_embedding_table().numpy())
    large = 4 * source.encoder.count_params() > MOST_BYTES
    (folder / ONNX_FILE).parent.mkdir(exist_ok=True)
    onnx.save_model(
        model,
        str(folder / ONNX_FILE),
        save_as_external_data=large,
        location=f"{ONNX_FILE.name}_data",
    )
    del model  # Its memory is needed.
    quantize_dynamic(
        folder / ONNX_FILE,
        folder / INT8_FILE,
        weight_type=QuantType.QInt8,
        use_external_data_format=large,
    )


def _with_few_rows(source: Source, rows: int) -> networks.BertEncoderV2:
    """Returns the encoder with an embedding table of so many rows, which hold nothing."""
    encoder = build_encoder(dataclasses.replace(source.config, vocab_size=rows))
    for ours, theirs in zip(encoder.variables, source.encoder.variables, strict=True):
        if ours.shape == theirs.shape:
            ours.assign(theirs)
    return encoder


def _convert(encoder: networks.BertEncoderV2):
    import tf2onnx

    @tf.function(
        input_signature=[tf.TensorSpec((None, None), tf.int64, name) for name in _NAMES.values()]
    )
    def embed(input_ids, attention_mask, token_type_ids):
        given = (input_ids, attention_mask, token_type_ids)
        inputs = {ours: tf.cast(ids, tf.int32) for ours, ids in zip(_NAMES, given, strict=True)}
        outputs = encoder(inputs, training=False)
        return {
            "default": outputs["pooled_output"],
            "last_hidden_state": outputs["sequence_output"],
        }

    model, _ = tf2onnx.convert.from_function(
        embed, input_signature=embed.input_signature, opset=_OPSET
    )
    return model


def _replace_table(model, rows: int, table: np.ndarray) -> None:
    """Puts the table in the place of the one of `rows` rows, a number that no other weight has."""
    import onnx

    [found] = [one for one in model.graph.initializer if list(one.dims) == [rows, table.shape[1]]]
    found.CopyFrom(onnx.numpy_helper.from_array(table, found.name))
