"""`labse ARGUMENTS` that trains up to a step and then halts, for a test to kill it just there.

    python tests/labse_tf/training/halting_worker.py STEP ARGUMENTS

It halts at the first measurement from STEP on. What it does in the background, such as sending a
checkpoint to a store, goes on.
"""

from __future__ import annotations

import sys
import threading

import orbit

from labse_tf.cli.main import main

_train = orbit.Controller.train


def _train_or_halt(controller: orbit.Controller, *arguments, **options) -> None:
    if int(controller.global_step.numpy()) >= int(sys.argv[1]):
        threading.Event().wait()
    _train(controller, *arguments, **options)


orbit.Controller.train = _train_or_halt
sys.exit(main(sys.argv[2:]))
