"""`labse corpus filter-bitext`: filters, deduplicates and shards translation pairs."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_filter_job, filter_job_options

EXAMPLES = """examples:
  labse corpus filter-bitext demo/bitext --out clean
  labse corpus filter-bitext de.tsv.gz 'web/*.tsv.zst' --out clean --max-length-ratio 4
  labse corpus filter-bitext 'opus/News.de-en.*' web/pairs.parquet --out clean
  labse corpus filter-bitext web --out clean --scores --max-bad-records 100
  labse corpus filter-bitext clean/scores --from-scores --out cleaner --max-length-ratio 4
  labse corpus filter-bitext web --out clean -- --runner=FlinkRunner --flink_master=HOST:8081

Input is <lang>.tsv[.gz|.xz|.bz2|.zst] (English<TAB>translation, further columns ignored), Moses
pairs NAME.<lang>-en.<lang> + NAME.<lang>-en.en, Parquet or TFRecord (see docs/files.md).
Writes DIR/bitext/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json, with the number of
pairs read, kept, and dropped by each reason; the same as a table on stdout, and examples of each
reason in DIR/examples.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser, max_per_language=100_000_000)
    parser.add_argument(
        "--min-characters",
        type=int,
        default=2,
        metavar="N",
        help="drop pairs with a side of fewer characters (default: %(default)s)",
    )
    parser.add_argument(
        "--max-characters",
        type=int,
        default=5000,
        metavar="N",
        help="drop pairs with a side of more characters (default: %(default)s)",
    )
    parser.add_argument(
        "--max-length-ratio",
        type=float,
        default=9.0,
        metavar="X",
        help="drop pairs with one side more than X times as many characters as the other "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--min-letters-share",
        type=float,
        default=0.2,
        metavar="X",
        help="drop pairs with a side of which less than this share (0 to 1) is letters "
        "(default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_bitext
    from beam_pipelines.report_table import format_report

    report = filter_bitext.run(
        args.inputs,
        args.out,
        min_characters=args.min_characters,
        max_characters=args.max_characters,
        max_length_ratio=args.max_length_ratio,
        min_letters_share=args.min_letters_share,
        **filter_job_options(args),
    )
    print(format_report(report))
