"""`labse corpus filter-monolingual`: filters, deduplicates and shards monolingual text."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_filter_job, filter_job_options
from labse_tf.files.record_kinds import MONOLINGUAL

EXAMPLES = """examples:
  labse corpus filter-monolingual demo/monolingual --out clean
  labse corpus filter-monolingual de.txt.gz 'web/*.txt.zst' --out clean --min-characters 20
  labse corpus filter-monolingual web --out clean --scores --max-bad-records 100
  labse corpus filter-monolingual clean/scores --from-scores --out cleaner --min-characters 30
  labse corpus filter-monolingual web --out clean --filter my_filters:NoShouting=0.5
  labse corpus filter-monolingual gs://b/wet --out gs://b/clean -- --runner=FlinkRunner \\
      --flink_master=HOST:8081
  labse corpus filter-monolingual CC-MAIN-*.warc.wet.gz --out clean --quality quality-model
  labse corpus filter-monolingual dewiki-latest-pages-articles.xml.bz2 --out clean
  labse corpus filter-monolingual --neighbours documents/*.txt --out clean --min-characters 10

Input is <lang>.txt[.gz|.xz|.bz2|.zst] (a sentence or paragraph a line), Parquet or TFRecord,
web pages (*.warc.gz, *.warc.wet.gz) or a dump of Wikipedia (<lang>wiki-*.xml.bz2): see
docs/files.md. The language of web pages is identified.

Writes DIR/monolingual/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json, with the number
of records read, kept, and dropped by each reason; the same as a table on stdout, and examples of
each reason in DIR/examples.md.

With --neighbours a record is two adjacent sentences, for `labse pretrain --objective cmlm`, in
DIR/neighbours/<lang>. <lang>.txt then has a sentence a line, in the order of the documents, and an
empty line between documents; pages are split. A record is kept if both sentences pass."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser, MONOLINGUAL)
    parser.add_argument(
        "--min-sentence-characters",
        type=int,
        metavar="N",
        help="drop sentences of pages and split lines with fewer characters (default: 0)",
    )
    parser.add_argument(
        "--min-language-confidence",
        type=float,
        default=0.5,
        metavar="P",
        help="drop lines of web pages identified with less, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--split-sentences",
        action=argparse.BooleanOptionalAction,
        help="make each sentence a record (default: of pages, not of lines)",
    )
    parser.add_argument(
        "--c4",
        action=argparse.BooleanOptionalAction,
        help="apply the heuristics of C4 (default: to pages, not to lines)",
    )

    parser.add_argument(
        "--neighbours",
        action="store_true",
        help="make records of two adjacent sentences; an empty line is a break, and so is whatever "
        "is dropped",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_monolingual
    from beam_pipelines.reporting.report import format_report

    report = filter_monolingual.run(
        args.inputs,
        args.out,
        min_sentence_characters=args.min_sentence_characters,
        min_language_confidence=args.min_language_confidence,
        split_sentences=args.split_sentences,
        c4=args.c4,
        neighbours=args.neighbours,
        **filter_job_options(args),
    )
    print(format_report(report))
