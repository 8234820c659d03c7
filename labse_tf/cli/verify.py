"""`labse verify`."""

from __future__ import annotations

import argparse

EXAMPLES = """examples:
  labse verify model

It loads the model dir in a new process that can import TensorFlow, TF Text and TF Hub, but nothing
of ours, and does there what users of TF-Hub's LaBSE do. Prints a line a check; exit status 0 if all
passed, 2 if one failed. `labse export` ends with it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="what `labse export` wrote")


def run(args: argparse.Namespace) -> None:
    from export.verification import verify

    def report(check) -> None:
        print(f"{'ok' if check.ok else 'FAILED':8}{check.name:24}{check.detail}", flush=True)

    verify(args.model_dir, report)
