"""`labse corpus filter-bitext`: filters, deduplicates and shards translation pairs."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_filter_job, filter_job_options

EXAMPLES = """examples:
  labse corpus filter-bitext demo/bitext --out clean
  labse corpus filter-bitext de.tsv.gz 'web/*.tsv.zst' --out clean --max-length-ratio 4
  labse corpus filter-bitext 'opus/News.de-en.*' web/pairs.parquet --out clean
  labse corpus filter-bitext opus.tmx.gz --out clean --unique-side either --pairs-per-side 3
  labse corpus filter-bitext web --out clean --cds runs/cds --min-cds-score 0.12
  labse corpus filter-bitext web --out clean --scores --max-bad-records 100
  labse corpus filter-bitext clean/scores --from-scores --out cleaner --max-length-ratio 4
  labse corpus filter-bitext web --out clean -- --runner=FlinkRunner --flink_master=HOST:8081

Input is <lang>.tsv[.gz|.xz|.bz2|.zst] (English<TAB>translation, further columns ignored), Moses
pairs NAME.<lang>-en.<lang> + NAME.<lang>-en.en, TMX, Parquet or TFRecord (see docs/files.md).
Writes DIR/bitext/<lang>/part-?????-of-?????.tfrecord.gz and DIR/report.json, with the number of
pairs read, kept, and dropped by each reason; the same as a table on stdout, and examples of each
reason in DIR/examples.md."""


# Option, type, default, metavar, what is dropped. Names are those of `filter_bitext.Limits`.
_LIMITS = (
    ("min-characters", int, 2, "N", "a side of fewer characters"),
    ("max-characters", int, 5000, "N", "a side of more characters"),
    ("max-length-ratio", float, 9.0, "X", "one side of more than X times the other's characters"),
    (
        "max-length-deviation",
        float,
        2.75,
        "X",
        "lengths more than X standard deviations from the usual ratio in their language",
    ),
    ("min-letters-share", float, 0.2, "X", "a side of which less than X (0 to 1) is letters"),
    ("max-markup-share", float, 0.4, "X", "a side of which more than X (0 to 1) is mark-up"),
    ("max-similarity", float, 0.6, "X", "sides that share X (0 to 1) of their letters' trigrams"),
    (
        "min-script-share",
        float,
        0.3,
        "X",
        "a side with less than X (0 to 1) of its letters in its language's scripts",
    ),
    (
        "min-number-agreement",
        float,
        0.3,
        "X",
        "sides that both have numbers and share less than X (0 to 1) of them",
    ),
    (
        "max-language-doubt",
        float,
        0.3,
        "X",
        "a side in another language, with more than X (0 to 1; 1 keeps all) certainty",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_filter_job(parser, max_per_language=100_000_000)
    for name, type_, default, metavar, dropped in _LIMITS:
        parser.add_argument(
            f"--{name}",
            type=type_,
            default=default,
            metavar=metavar,
            help=f"drop pairs with {dropped} (default: %(default)s)",
        )
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
    parser.add_argument(
        "--cds",
        metavar="RUN_DIR",
        help="drop pairs by contrastive data selection, with this run of `labse corpus train-cds`",
    )
    parser.add_argument(
        "--min-cds-score",
        type=float,
        metavar="X",
        help="with --cds, or --from-scores of a job that had it: drop pairs with a lower score; "
        "`labse corpus calibrate` tells which",
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_bitext
    from beam_pipelines.reporting.table import format_report

    names = [name.replace("-", "_") for name, *_ in _LIMITS]
    report = filter_bitext.run(
        args.inputs,
        args.out,
        unique_side=args.unique_side,
        pairs_per_side=args.pairs_per_side,
        **{name: getattr(args, name) for name in names},
        cds=args.cds,
        min_cds_score=args.min_cds_score,
        keep=args.keep,
        **filter_job_options(args),
    )
    print(format_report(report))
