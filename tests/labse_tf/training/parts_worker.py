"""Runs `labse ARGUMENTS`, and writes which corpus files were read; run by test_input_parts.py.

`parts_worker.py OUT.json ARGUMENTS...`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
from labse_tf.cli.main import main
from labse_tf.data import texts


def run(out, *arguments):
    read = []
    original = texts.records

    def records(file, **options):
        read.append(file.path)
        return original(file, **options)

    texts.records = records
    code = main(list(arguments))
    Path(out).write_text(json.dumps(sorted(read)), "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
