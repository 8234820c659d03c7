"""`labse corpus filter-monolingual`: filters, deduplicates and shards monolingual text."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_filter_job, filter_job_options

EXAMPLES = """examples:
  labse corpus filter-monolingual demo/monolingual --out clean
  labse corpus filter-monolingual de.txt.gz 'web/*.txt.zst' --out clean --min-characters 20
  labse corpus filter-monolingual web --out clean --scores --max-bad-records 100
  labse corpus filter-monolingual clean/scores --from-scores --out cleaner --min-characters 30
  labse corpus filter-monolingual web --out clean -- --runner=FlinkRunner --flink_master=HOST:8081

Input is <lang>.txt[.gz|.xz|.bz2|.zst] (a sentence or paragraph a line), Parquet or TFRecord (see
docs/files.md). Writes DIR/monolingual/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json,
with the number of records read, kept, and dropped by each reason; the same as a table on stdout,
and examples of each reason in DIR/examples.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser)
    parser.add_argument(
        "--min-characters",
        type=int,
        default=10,
        metavar="N",
        help="drop lines with fewer characters (default: %(default)s)",
    )
    parser.add_argument(
        "--max-characters",
        type=int,
        default=5000,
        metavar="N",
        help="drop lines with more characters (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_monolingual
    from beam_pipelines.report_table import format_report

    report = filter_monolingual.run(
        args.inputs,
        args.out,
        min_characters=args.min_characters,
        max_characters=args.max_characters,
        **filter_job_options(args),
    )
    print(format_report(report))
