"""`labse eval compare`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_overwrite

EXAMPLES = """examples:
  labse eval compare ours.json theirs.json
  labse eval compare results_table results_layers results_theirs --out comparison.html

Each RESULT is a file of `labse eval --out`, or a folder of `labse eval all`. Differences are to the
first RESULT, with the 95 % interval of the paired bootstrap over languages (or files, or tasks) and
a star where it does not contain 0. The page has the same table, plots by language, and means by
script; it needs no other file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", nargs="+", metavar="RESULT", help="two or more")
    parser.add_argument("--out", metavar="FILE.html", help="write a page")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.errors import InputError
    from labse_tf.evaluation.comparison import compare, format_comparisons, write_page
    from labse_tf.files.outputs import check_free_file

    if len(args.results) < 2:
        raise InputError("one result cannot be compared", remedy="name two or more")
    if args.out:
        check_free_file(args.out, overwrite=args.overwrite)
    comparisons = compare(args.results)
    print(format_comparisons(comparisons))
    if args.out:
        write_page(comparisons, args.out, overwrite=args.overwrite)
