"""`labse eval compare`."""

from __future__ import annotations

import argparse

EXAMPLES = """examples:
  labse eval compare ours.json theirs.json
  labse eval compare results_table results_layers results_theirs

Each RESULT is a file of `labse eval --out`, or a folder of `labse eval all`. Differences are to the
first RESULT, with the 95 % interval of the paired bootstrap over languages (or files, or tasks) and
a star where it does not contain 0."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", nargs="+", metavar="RESULT", help="two or more")


def run(args: argparse.Namespace) -> None:
    from labse_tf.errors import InputError
    from labse_tf.evaluation.comparison import compare, format_comparisons

    if len(args.results) < 2:
        raise InputError("one result cannot be compared", remedy="name two or more")
    print(format_comparisons(compare(args.results)))
