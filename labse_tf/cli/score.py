"""`labse score`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import DIM, MODEL_HELP, OVERWRITE, SEARCH, add_options

EXAMPLES = """examples:
  labse score model pairs.tsv --out scored.tsv
  zcat crawl.tsv.gz | labse score model - --threshold 0.7 | cut -f 2- > clean.tsv
  labse score model pairs.tsv --out scored.tsv --margin ratio --threshold 1.05

PAIRS.tsv has the columns source and target; further columns are kept. The score is added in front
of the line: the cosine, or with --margin the margin score, for which the neighbours of a sentence
are searched in the whole other column. The order does not change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        f"model MODEL: {MODEL_HELP}",
        """
        pairs PAIRS.tsv: source, target, ...; - reads stdin
        --out FILE.tsv=-: output file (default: stdout)
        --margin {ratio,distance,absolute}=absolute: ratio or distance: relative to the mean
          similarity of both sentences' neighbours; absolute (default): the cosine itself, which
          keeps nothing in memory or on disk
        """,
        DIM,
        SEARCH,
        "--threshold X: write only pairs with this score or above",
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    import logging

    from labse_tf.embedding.open import open_encoder
    from labse_tf.retrieval.job import Options
    from labse_tf.retrieval.scoring import score

    names = ("neighbours", "margin", "threshold", "index", "recall", "dim")
    read, written = score(
        args.pairs,
        args.out,
        model=args.model,
        open_encoder=open_encoder,
        options=Options(**{name: getattr(args, name) for name in names}),
        overwrite=args.overwrite,
    )
    logging.getLogger("labse").info("%d pairs written of %d", written, read)
