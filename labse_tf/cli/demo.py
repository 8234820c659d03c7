"""`labse demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = """examples:
  labse demo
  labse demo --out /tmp/demo

If interrupted, run the same command again: it resumes after the last completed stage, or from the
last checkpoint within a stage. Writes DIR/report.html, and a model to DIR/model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="demo", metavar="DIR", help="default: demo")
    parser.add_argument(
        "--config",
        default="configs/tiny.yaml",
        metavar="FILE",
        help="of the model with layers (default: %(default)s)",
    )
    parser.add_argument(
        "--table-config",
        default="configs/tiny_table.yaml",
        metavar="FILE",
        help="of the model without layers that it starts from (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    from labse_tf.cli.main import main
    from labse_tf.config import load_config
    from labse_tf.demo.result import show_result, write_sentences
    from labse_tf.demo.stages import Demo, stages

    # Report errors in the configuration now, not after four stages.
    for config in (args.config, args.table_config):
        load_config(config)
    out = Path(args.out)
    demo = Demo(out, main)
    status = demo.run(
        stages(out, args.config, args.table_config),
        before={"embed sentences for the report": lambda: write_sentences(out)},
    )
    if not status:
        show_result(out, demo.seconds)
    return status
