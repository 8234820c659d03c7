"""`labse ARGUMENTS` as a worker of a cluster, for a test that kills it; run by test_workers.py.

    python tests/labse_tf/training/cluster_worker.py STEP OUT.json ARGUMENTS

At the first measurement from STEP on it halts; its background work, such as sending a checkpoint to
a store, continues. At the end it writes which corpus files it has read.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
import orbit

from labse_tf.cli.main import main
from labse_tf.data import texts


def run(step, out, *arguments):
    read, records, train = set(), texts.records, orbit.Controller.train

    def noted(file, **options):
        read.add(file.path)
        return records(file, **options)

    def train_or_halt(controller, *arguments, **options):
        if int(controller.global_step.numpy()) >= int(step):
            threading.Event().wait()
        train(controller, *arguments, **options)

    texts.records, orbit.Controller.train = noted, train_or_halt
    code = main(list(arguments))
    Path(out).write_text(json.dumps(sorted(read)), "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
