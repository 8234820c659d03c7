"""Dropout whose masks can be drawn again: a pass repeated, or a step after a resume."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
import tf_keras


@contextlib.contextmanager
def replayable_dropout() -> Iterator[None]:
    """Layers made inside drop by `dropout_generators`, whose states can be set.

    Such a model is to be trained, not to be exported: a SavedModel does not keep the generators.
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
    """Returns what the dropout layers of a model draw from, if they drop anything."""
    layers = [
        layer
        for layer in model.submodules
        if isinstance(layer, tf_keras.layers.Dropout) and layer.rate > 0
    ]
    # Keras has no public name for it.
    return [layer._random_generator._generator for layer in layers]
