"""The features of a batch: declared where it is built, checked before training."""

from __future__ import annotations

import tensorflow as tf

# A feature, or a group of them, by name; the batch is the first dimension.
Features = dict[str, "tf.TensorSpec | Features"]

# The output of `Tokenizer.pack`, and the input of an encoder.
ENCODER_INPUTS: Features = {
    name: tf.TensorSpec([None, None], tf.int32)
    for name in ("input_word_ids", "input_mask", "input_type_ids")
}


def check_features(batches: tf.data.Dataset, features: Features) -> tf.data.Dataset:
    """Returns `batches`, a dataset of dicts, checked to have at least `features`.

    Raises:
      TypeError: naming the first feature that is missing, or of another type or shape.
    """
    _check(batches.element_spec, features, "")
    return batches


def _check(found, wanted: Features, prefix: str) -> None:
    if not isinstance(found, dict):
        raise TypeError(f"a batch{prefix and f' at {prefix!r}'} is {found}, not a dict of features")
    for name, spec in wanted.items():
        path = f"{prefix}{name}"
        if name not in found:
            raise TypeError(f"the batch has no feature '{path}'; it has {', '.join(found)}")
        if isinstance(spec, dict):
            _check(found[name], spec, f"{path}.")
        elif not spec.is_compatible_with(found[name]):
            raise TypeError(f"the feature '{path}' is {found[name]}, it must be {spec}")
