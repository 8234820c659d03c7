"""Dropout with reproducible masks, for repeated forward passes and resumed runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
import tf_keras


@contextlib.contextmanager
def replayable_dropout() -> Iterator[None]:
    """Within this context, new layers use `dropout_generators`, whose states can be set.

    Such a model is for training, not for export: a SavedModel does not keep the generators.
    """
    keras = tf_keras.backend.experimental
    if keras.is_tf_random_generator_enabled():
        yield
        return
    keras.enable_tf_random_generator()
    try:
        yield
    finally:
        keras.disable_tf_random_generator()


def dropout_generators(model: tf.Module) -> list[tf.random.Generator]:
    """Returns the generators of a model's dropout layers, except layers of rate 0."""
    layers = [
        layer
        for layer in model.submodules
        if isinstance(layer, tf_keras.layers.Dropout) and layer.rate > 0
    ]
    # Keras has no public name for it.
    return [layer._random_generator._generator for layer in layers]
