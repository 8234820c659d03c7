"""`labse verify`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_options

EXAMPLES = """examples:
  labse verify model

Loads the model dir in a new process that can import TensorFlow, TF Text and TF Hub, but not this
package, and does what users of TF-Hub's LaBSE do. Hugging Face's, ONNX's and LiteRT's files must
give the vectors of the training graph. Prints one line per check; exit status 0 if all passed, 2 if
one failed. `labse export` runs this too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "model_dir MODEL_DIR: a model dir from `labse export`")


def run(args: argparse.Namespace) -> None:
    from export.verification import verify

    def report(check) -> None:
        print(f"{'ok' if check.ok else 'FAILED':8}{check.name:28}{check.detail}", flush=True)

    verify(args.model_dir, report)
