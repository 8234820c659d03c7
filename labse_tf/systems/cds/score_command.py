"""`labse corpus score-cds`: scores pairs for contrastive data selection."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_inputs, add_overwrite

EXAMPLES = """examples:
  labse corpus score-cds runs/cds clean --sample 500 --out scored.tsv
  labse corpus score-cds runs/cds de.tsv.gz --out scored.tsv

Writes a TSV file with the columns score, label (empty, for GOOD or BAD), language, source and
target, in no particular order. A higher score is better. Sample from pairs that passed the other
filters, so that `labse corpus calibrate` chooses the threshold for these."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_DIR", help="of `labse corpus train-cds`")
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="SCORED.tsv", help="file to write")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="score only N pairs, selected by hash: the same ones each time",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.systems.cds import score_job as score_cds

    score_cds.run(
        args.run,
        args.inputs,
        args.out,
        sample=args.sample,
        overwrite=args.overwrite,
        beam_options=args.beam_options,
    )
