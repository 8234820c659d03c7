"""Uses a model dir as users of google/LaBSE/2 do; verification.py runs it as a separate program.

    python -I verification_client MODEL_DIR SCRATCH_DIR

It must run where only TensorFlow, TF Text and TF Hub are installed, so of our code it imports only
the files beside it, which Python finds because it runs the folder.
Prints a line of JSON for each check: `check`, `ok`, `detail`.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
from collections.abc import Callable

from hidden import HIDDEN

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
for name in HIDDEN:
    sys.modules[name] = None

import encoder_checks  # noqa: E402
import folder_checks  # noqa: E402
import format_checks  # noqa: E402
import preprocessor_checks  # noqa: E402
import tensorflow as tf  # noqa: E402
import training_checks  # noqa: E402
from interface import Failed, Model  # noqa: E402

CHECKS: tuple[Callable[[Model], str], ...] = (
    folder_checks.ours_is_hidden,
    folder_checks.no_absolute_path,
    folder_checks.loaders_agree,
    preprocessor_checks.preprocessor_call,
    preprocessor_checks.tokenize,
    preprocessor_checks.bert_pack_inputs,
    preprocessor_checks.within_tf_data,
    encoder_checks.encoder_call,
    encoder_checks.any_length,
    encoder_checks.signatures,
    folder_checks.assets,
    encoder_checks.text_encoder,
    training_checks.training_graph,
    training_checks.dropout,
    training_checks.fine_tuning,
    encoder_checks.saved_again,
)


def main(path: str, scratch: str) -> None:
    # Libraries print to stderr, so that stdout has only the results.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Two replicas; must be set before TensorFlow initialises its devices.
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
    # Otherwise half of the time would be spent on garbage collection of objects that stay alive.
    gc.set_threshold(100_000, 50, 100)
    checks = dict(format_checks.checks_of(path))
    # Model dirs may have the other formats alone.
    if os.path.isfile(f"{path}/encoder/saved_model.pb"):
        model = Model(path, scratch)
        own = {one.__name__.replace("_", " "): functools.partial(one, model) for one in CHECKS}
        checks = own | checks
    gc.freeze()
    for name, check in checks.items():
        try:
            line = {"ok": True, "detail": check()}
        except Failed as failure:
            line = {"ok": False, "detail": str(failure)}
        except Exception as error:  # Any error that a user would get is a finding.
            line = {"ok": False, "detail": f"{type(error).__name__}: {str(error)[:300]}"}
        gc.collect()  # Loaded models are in reference cycles; each holds a copy of the weights.
        line = {"check": name, **line}
        print(json.dumps(line), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
