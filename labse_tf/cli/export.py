"""`labse export`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_checkpoint, add_overwrite

EXAMPLES = """examples:
  labse export runs/dual --out model
  labse export runs/dual --out model --length 64
  labse export runs/dual --out newest --checkpoint latest"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN_DIR", help="of `labse train` or `labse pretrain`")
    parser.add_argument("--out", required=True, metavar="MODEL_DIR", help="the model dir to write")
    parser.add_argument(
        "--length",
        type=int,
        metavar="TOKENS",
        help="static length of the preprocessor's result (default 128, or encoder.max_positions "
        "where these are fewer)",
    )
    add_checkpoint(parser, "--checkpoint")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.outputs import check_free
    from labse_tf.training import run_dir as run_dirs

    run_dir = run_dirs.open_existing(args.run_dir)
    check_free(args.out, overwrite=args.overwrite)
    from export.model_dir import export_run

    export_run(
        run_dir,
        args.out,
        length=args.length,
        checkpoint=args.checkpoint,
        overwrite=args.overwrite,
    )
