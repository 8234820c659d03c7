"""`labse demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labse_tf.cli.arguments import add_options

EXAMPLES = """examples:
  labse demo
  labse demo --out /tmp/demo

If interrupted, run the same command again: it resumes after the last completed stage, or from the
last checkpoint within a stage. Writes DIR/report.html, and a model to DIR/model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        --out DIR=demo: default: demo
        --config FILE=configs/tiny.yaml: of the model with layers
        --table-config FILE=configs/tiny_table.yaml: of the model without layers that it starts from
        """,
    )


def run(args: argparse.Namespace) -> int:
    from labse_tf.cli.main import main
    from labse_tf.config import load_config
    from labse_tf.demo.report import show_result, write_sentences
    from labse_tf.demo.stages import run_stages, stages

    # Report errors in the configuration now, not after four stages.
    for config in (args.config, args.table_config):
        load_config(config)
    out = Path(args.out)
    before = {"embed sentences for the report": lambda: write_sentences(out)}
    todo = stages(out, args.config, args.table_config)
    status, seconds = run_stages(out, todo, main, before=before)
    if not status:
        show_result(out, seconds)
    return status
