"""`labse corpus score-cds`: scores pairs for contrastive data selection."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, add_options

EXAMPLES = """examples:
  labse corpus score-cds runs/cds clean --sample 500 --out scored.tsv
  labse corpus score-cds runs/cds de.tsv.gz --out scored.tsv

Writes a TSV file with the columns score, label (empty, for GOOD or BAD), language, source and
target, in no particular order. A higher score is better. Sample from pairs that passed the other
filters, so that `labse corpus calibrate` chooses the threshold for these."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        "run RUN_DIR: of `labse corpus train-cds`",
        INPUTS,
        """
        --out SCORED.tsv!: file to write
        --sample N: score only N pairs, selected by hash: the same ones each time
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.systems.cds import score_job

    names = ("sample", "overwrite", "beam_options")
    options = {name: getattr(args, name) for name in names}
    score_job.run(args.run, args.inputs, args.out, **options)
