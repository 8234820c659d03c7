"""A user of a model dir who has TensorFlow, TF Text and TF Hub only; run by test_interface.py.

`hub_client.py MODEL_DIR OTHER_DIR` prints what it saw as one line of JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys


def hide_ours():
    """Takes the editable installation's folder off the path: a user has no such thing."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if "editable" not in repr(hook)]
    sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, "labse_tf"))]
    sys.path_importer_cache.clear()


hide_ours()
OURS = ("labse_tf", "export", "vocab", "beam_pipelines", "official")
# tf-models-official is no part of what a user needs.
sys.modules["official"] = None
IMPORTABLE = [name for name in OURS[:-1] if importlib.util.find_spec(name) is not None]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401

TEXTS = ["ab a.", "", "汉字"]
WORDS = ["Die Katze und der Hund.", "", "猫は家を見ます。"]


def described(value):
    if isinstance(value, dict):
        return {name: described(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    return [value.dtype.name, value.shape.as_list()]


def numbers(value):
    return {name: part.numpy().tolist() for name, part in value.items()}


def main(model_dir, other_dir):
    preprocessor_dir, encoder_dir = (f"{model_dir}/{name}" for name in ("preprocessor", "encoder"))
    loaders = {
        "hub.KerasLayer": hub.KerasLayer,
        "hub.load": hub.load,
        "tf.saved_model.load": tf.saved_model.load,
    }
    preprocessors = {name: load(preprocessor_dir) for name, load in loaders.items()}
    encoders = {name: load(encoder_dir) for name, load in loaders.items()}
    strings = tf.constant(WORDS)
    packed = {name: preprocessor(strings) for name, preprocessor in preprocessors.items()}
    outputs = {name: encoders[name](packed[name]) for name in loaders}
    inputs, output = packed["hub.load"], outputs["hub.load"]
    default = output["default"].numpy()
    seen = {
        "importable": IMPORTABLE,
        "preprocessor": described(packed),
        "encoder": described(outputs),
        "agreement": max(
            float(np.abs(default - other["default"].numpy()).max()) for other in outputs.values()
        ),
        "default_is_pooled": bool((default == output["pooled_output"].numpy()).all()),
        "largest_default": float(np.abs(default).max()),
        "norms": np.linalg.norm(default, axis=1).tolist(),
        "last_is_sequence": bool(
            (output["encoder_outputs"][-1] == output["sequence_output"]).numpy().all()
        ),
    }

    preprocessor, encoder = preprocessors["hub.load"], encoders["hub.load"]
    tokens = preprocessor.tokenize(tf.constant(TEXTS))
    seen["tokenize"] = {
        "dtype": tokens.dtype.name,
        "shape": tokens.shape.as_list(),
        "ids": tokens.to_list(),
    }
    special = preprocessor.tokenize.get_special_tokens_dict()
    seen["special_tokens"] = {
        name: [value.dtype.name, int(value)] for name, value in special.items()
    }
    seen["pack_one"] = numbers(preprocessor.bert_pack_inputs([tokens], seq_length=10))
    seen["pack_two"] = numbers(
        preprocessor.bert_pack_inputs([tokens, tokens], seq_length=tf.constant(12))
    )
    seen["pack_lengths"] = {
        length: preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(length))[
            "input_word_ids"
        ].shape.as_list()
        for length in (3, 16, 128)
    }

    mapped = tf.data.Dataset.from_tensor_slices(WORDS).batch(2).map(preprocessor)
    batches = list(mapped)
    joined = tf.concat([batch["input_word_ids"] for batch in batches], axis=0)
    seen["tf_data"] = {
        "batches": [batch["input_word_ids"].shape.as_list() for batch in batches],
        "same": bool((joined == inputs["input_word_ids"]).numpy().all()),
    }

    seen["lengths"] = {}
    for length in (1, 2, 7, 64, 128):
        ones = tf.ones((2, length), tf.int32)
        result = encoder(
            {"input_word_ids": 104 * ones, "input_mask": ones, "input_type_ids": 0 * ones}
        )
        seen["lengths"][length] = result["default"].shape.as_list()
    short = preprocessor.bert_pack_inputs([preprocessor.tokenize(strings)], seq_length=40)
    seen["padding_difference"] = float(np.abs(encoder(short)["default"].numpy() - default).max())

    layer = hub.KerasLayer(encoder_dir, trainable=True)
    before = {variable.name: variable.numpy() for variable in layer.trainable_variables}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(inputs)["default"] - 1.0))
    gradients = tape.gradient(loss, layer.trainable_variables)
    for variable, gradient in zip(layer.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    seen["training"] = {
        "frozen_variables": len(encoders["hub.KerasLayer"].trainable_variables),
        "trainable_variables": len(layer.trainable_variables),
        "names": list(before),
        "changed": [
            variable.name
            for variable in layer.trainable_variables
            if (variable.numpy() != before[variable.name]).any()
        ],
        "output_change": float(np.abs(layer(inputs)["default"].numpy() - default).max()),
    }

    with open(encoder.vocab_file.asset_path.numpy(), encoding="utf-8") as file:
        seen["vocab_file"] = file.read()
    seen["do_lower_case"] = bool(encoder.do_lower_case.numpy())

    # Saved again from what was loaded, then the source is taken away.
    tf.saved_model.save(preprocessor, f"{other_dir}/preprocessor")
    tf.saved_model.save(encoder, f"{other_dir}/encoder")
    shutil.rmtree(model_dir)
    again = tf.saved_model.load(f"{other_dir}/encoder")(
        tf.saved_model.load(f"{other_dir}/preprocessor")(strings)
    )
    seen["saved_again"] = float(np.abs(again["default"].numpy() - default).max())
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
