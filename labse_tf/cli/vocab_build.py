"""`labse vocab build`: counts words per language, smooths the counts, learns a vocabulary."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, VOCABULARY, add_options

EXAMPLES = """examples:
  labse vocab build clean --out vocab.txt
  labse vocab build demo/monolingual demo/bitext --out vocab.txt --vocab-size 30000
  labse vocab build web --out small.txt --vocab-size 30000 --counts web_counts
  labse vocab build web --out large.txt --vocab-size 60000 --counts web_counts
  labse vocab build s3://b/clean --out vocab.txt --counts s3://b/counts -- --runner=FlinkRunner \\
      --flink_master=HOST:8081

Input is monolingual text, bitext (both sides are counted) or clean shards, in any format of
docs/files.md. The defaults are the paper's: 501,153 tokens, smoothing exponent 0.3."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        INPUTS,
        VOCABULARY.format(size=501_153),
        """
        --min-word-count N=1: leave out words whose count is below this after smoothing, which
          lowers the counts of large languages and raises those of small ones
        --max-word-length N=50: leave out words with more characters than this
        --max-unique-chars N: maximum number of distinct characters (default: an eighth of the
          vocabulary, at most 20000)
        --counts DIR: keep the word counts in this folder and reuse them for the same text and
          settings; required on a cluster, whose workers must all reach it, such as
          s3://BUCKET/FOLDER
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import build_vocab

    build_vocab.run(**vars(args))
