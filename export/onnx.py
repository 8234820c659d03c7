"""ONNX files of the encoder, named as Hugging Face's exporters name theirs."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from official.nlp.modeling import networks

ONNX_FILE, INT8_FILE = Path("onnx", "model.onnx"), Path("onnx", "model_int8.onnx")

_OPSET = 17


def save_onnx(encoder: networks.BertEncoderV2, folder: Path) -> None:
    """Writes `folder`/onnx/model.onnx, in float32, and model_int8.onnx: weights in int8.

    Inputs `input_ids`, `attention_mask`, `token_type_ids`: int64 `[batch, length]`. Outputs
    `default`, float32 `[batch, dim]`, not normalised, and `last_hidden_state`.
    """
    import onnx
    import tf2onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    names = {
        "input_word_ids": "input_ids",
        "input_mask": "attention_mask",
        "input_type_ids": "token_type_ids",
    }

    @tf.function(
        input_signature=[tf.TensorSpec((None, None), tf.int64, name) for name in names.values()]
    )
    def embed(input_ids, attention_mask, token_type_ids):
        given = (input_ids, attention_mask, token_type_ids)
        inputs = {ours: tf.cast(ids, tf.int32) for ours, ids in zip(names, given, strict=True)}
        outputs = encoder(inputs, training=False)
        return {
            "default": outputs["pooled_output"],
            "last_hidden_state": outputs["sequence_output"],
        }

    model, _ = tf2onnx.convert.from_function(
        embed, input_signature=embed.input_signature, opset=_OPSET
    )
    (folder / ONNX_FILE).parent.mkdir(exist_ok=True)
    onnx.save_model(model, str(folder / ONNX_FILE))
    quantize_dynamic(
        folder / ONNX_FILE,
        folder / INT8_FILE,
        weight_type=QuantType.QInt8,
    )
