"""`labse corpus train-quality`: trains the model that `filter-monolingual --quality` filters by."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, add_options

EXAMPLES = """examples:
  labse corpus train-quality CC-MAIN-*.warc.gz --out quality-model
  labse corpus filter-monolingual CC-MAIN-*.warc.wet.gz --out clean --quality quality-model

Input is HTML pages in WARC files. The model distinguishes sentences of a page's main content from
other text on the page. The table on stdout shows its accuracy: the area under the ROC curve (0.5 is
chance, 1 is perfect) on sites, or pages if there are few sites, that it was not trained on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        INPUTS,
        """
        --out MODEL!: folder to write
        --max-texts N=200_000: train on at most this many sentences, drawn at random
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import train_quality

    print(train_quality.format_table(train_quality.run(**vars(args))))
