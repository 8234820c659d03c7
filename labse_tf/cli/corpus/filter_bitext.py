"""`labse corpus filter-bitext`: filters, deduplicates and shards translation pairs."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_filter_job, filter_job_options
from labse_tf.files.record_kinds import BITEXT

EXAMPLES = """examples:
  labse corpus filter-bitext demo/bitext --out clean
  labse corpus filter-bitext de.tsv.gz 'web/*.tsv.zst' --out clean --max-length-ratio 4
  labse corpus filter-bitext 'opus/News.de-en.*' web/pairs.parquet --out clean
  labse corpus filter-bitext opus.tmx.gz --out clean --unique-side either --pairs-per-side 3
  labse corpus filter-bitext web --out clean --cds runs/cds --min-cds-score 0.12
  labse corpus filter-bitext web --out clean --scores --max-bad-records 100
  labse corpus filter-bitext clean/scores --from-scores --out cleaner --max-length-ratio 4
  labse corpus filter-bitext web --out clean --filter my_filters:NoShouting=0.5
  labse corpus filter-bitext s3://b/web --out s3://b/clean -- --runner=FlinkRunner \\
      --flink_master=HOST:8081

Input is <lang>.tsv[.gz|.xz|.bz2|.zst] (English<TAB>translation, further columns ignored), Moses
pairs NAME.<lang>-en.<lang> + NAME.<lang>-en.en, TMX, Parquet or TFRecord (see docs/files.md).
Writes DIR/bitext/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json, with the number of
pairs read, kept, and dropped by each reason; the same as a table on stdout, and examples of each
reason in DIR/examples.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser, BITEXT, max_per_language=100_000_000)
    parser.add_argument(
        "--unique-side",
        choices=("source", "target", "either"),
        help="keep only --pairs-per-side of the pairs that share this side, such as navigation "
        "text (default: keep all)",
    )
    parser.add_argument(
        "--pairs-per-side",
        type=int,
        default=1,
        metavar="N",
        help="with --unique-side (default: %(default)s)",
    )
    parser.add_argument(
        "--keep",
        choices=("random", "best"),
        default="random",
        help="which pairs stay of a language that has more than --max-per-language: a random "
        "sample, or the best by contrastive data selection (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_bitext
    from beam_pipelines.reporting.report import format_report

    report = filter_bitext.run(
        args.inputs,
        args.out,
        unique_side=args.unique_side,
        pairs_per_side=args.pairs_per_side,
        keep=args.keep,
        **filter_job_options(args),
    )
    print(format_report(report))
