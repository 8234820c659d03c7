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
  labse corpus filter-monolingual CC-MAIN-*.warc.wet.gz --out clean --quality quality-model
  labse corpus filter-monolingual dewiki-latest-pages-articles.xml.bz2 --out clean

Input is <lang>.txt[.gz|.xz|.bz2|.zst] (a sentence or paragraph a line), Parquet or TFRecord,
web pages (*.warc.gz, *.warc.wet.gz) or a dump of Wikipedia (<lang>wiki-*.xml.bz2): see
docs/files.md. The language of web pages is identified.

Writes DIR/monolingual/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json, with the number
of records read, kept, and dropped by each reason; the same as a table on stdout, and examples of
each reason in DIR/examples.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser)
    parser.add_argument(
        "--min-characters",
        type=int,
        metavar="N",
        help="drop lines with fewer characters, before they are split (default: 10)",
    )
    parser.add_argument(
        "--max-characters",
        type=int,
        metavar="N",
        help="drop lines with more characters, before they are split (default: 5000)",
    )
    parser.add_argument(
        "--min-sentence-characters",
        type=int,
        metavar="N",
        help="drop sentences of pages and split lines with fewer characters (default: 0)",
    )
    parser.add_argument(
        "--identify",
        action="store_true",
        help="drop what is not in the language that its file or field gives",
    )
    parser.add_argument(
        "--max-language-doubt",
        type=float,
        default=0.3,
        metavar="X",
        help="with --identify: how surely it may be in another language, -1 to 1"
        " (default: %(default)s)",
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
        "--min-words",
        type=int,
        default=5,
        metavar="N",
        help="of C4: drop lines with fewer words (default: %(default)s)",
    )
    parser.add_argument(
        "--min-sentences",
        type=int,
        default=3,
        metavar="N",
        help="of C4: drop pages of which fewer sentences are left (default: %(default)s)",
    )
    parser.add_argument(
        "--quality", metavar="MODEL", help="drop what this model of `train-quality` finds bad"
    )
    parser.add_argument(
        "--min-quality",
        type=float,
        default=0.5,
        metavar="P",
        help="with --quality: the least that stays, 0 to 1 (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_monolingual
    from beam_pipelines.reporting.table import format_report

    report = filter_monolingual.run(
        args.inputs,
        args.out,
        min_characters=args.min_characters,
        max_characters=args.max_characters,
        min_sentence_characters=args.min_sentence_characters,
        min_language_confidence=args.min_language_confidence,
        identify=args.identify,
        max_language_doubt=args.max_language_doubt,
        split_sentences=args.split_sentences,
        c4=args.c4,
        min_words=args.min_words,
        min_sentences=args.min_sentences,
        quality=args.quality,
        min_quality=args.min_quality,
        **filter_job_options(args),
    )
    print(format_report(report))
