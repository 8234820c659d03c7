"""Checks of the folder: what can be loaded, and what it must not contain."""

from __future__ import annotations

import importlib
import os
import re

import tensorflow_hub as hub
from hidden import HIDDEN
from interface import (
    CLOSE,
    INPUTS,
    ROOTS,
    Failed,
    Model,
    distance,
    expect,
)


def ours_is_hidden(model: Model) -> str:
    for name in HIDDEN:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        raise Failed(f"{name} can be imported: the other checks prove little")
    return "only TensorFlow, TF Text and TF Hub"


def no_absolute_path(model: Model) -> str:
    """The graphs contain no path of the machine that made them."""
    pattern = re.compile(rb"(?<![\w./-])/(?:" + "|".join(ROOTS).encode() + rb")/[\w./-]+")
    for folder, _, names in os.walk(model.path):
        for name in set(names) & {"saved_model.pb", "keras_metadata.pb", "model.json"}:
            with open(os.path.join(folder, name), "rb") as file:
                found = sorted(set(pattern.findall(file.read())))
            expect(not found, f"{os.path.relpath(os.path.join(folder, name), model.path)}: {found}")
    return ""


def loaders_agree(model: Model) -> str:
    """Keras layers return the same as `hub.load`. `saved_again` checks `tf.saved_model.load`."""
    packed = hub.KerasLayer(f"{model.path}/preprocessor")(model.strings)
    for name in INPUTS:
        expect(bool((packed[name] == model.packed[name]).numpy().all()), f"different {name}")
    default = hub.KerasLayer(f"{model.path}/encoder")(packed)["default"]
    off = distance(default, model.default)
    expect(off <= CLOSE, f"they differ by {off:.1e}")
    return "hub.KerasLayer, hub.load"


def assets(model: Model) -> str:
    # Tokens may contain characters that Python treats as line ends.
    with open(model.encoder.vocab_file.asset_path.numpy(), "rb") as file:
        tokens = file.read().count(b"\n")
    expect(tokens == model.facts["vocabulary"]["tokens"], f"vocab_file has {tokens} tokens")
    expect(bool(model.encoder.do_lower_case.numpy()) is False, "do_lower_case is true")
    return "vocab_file, do_lower_case"
