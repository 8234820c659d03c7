"""`labse corpus filter-bitext`: filters, deduplicates and shards translation pairs."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, NORMALIZE, OVERWRITE, add_options
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
    add_options(
        parser,
        """
        --unique-side {source,target,either}: keep only --pairs-per-side of the pairs that share
          this side, such as navigation text (default: keep all)
        --pairs-per-side N=1: with --unique-side
        --keep {random,best}=random: which pairs stay of a language that has more than
          --max-per-language: a random sample, or the best by contrastive data selection
        """,
    )


def add_filter_job(
    parser: argparse.ArgumentParser, kind: str, *, max_per_language: int = 0
) -> None:
    """Adds the arguments common to both filter jobs, and the options of the filters for `kind`."""
    from beam_pipelines.filtering.choose_filters import find_filters, options_of

    add_options(
        parser,
        INPUTS,
        f"""
        --out DIR!: folder to write
        --shard-megabytes MB=50: approximate uncompressed input per shard; a worker needs up to 25
          times as much memory
        --max-per-language N={max_per_language}: keep at most N records per language, a random
          sample of those that pass; 0 keeps all
        --max-bad-records N=0: drop up to N records that cannot be read, such as lines of invalid
          UTF-8; a truncated file counts as one (default: %(default)s, the first ends the job)
        --scores: also write DIR/scores/<lang>/*.parquet: the scores of all filters for every record
        --from-scores: INPUTs are `scores` folders: apply other limits to them, without scoring
          again
        --examples N=10: write N random examples per reason to DIR/examples.md
        --seed N=0: seed of the random samples
        """,
        NORMALIZE,
        OVERWRITE,
    )
    # The options that the filters declare, in the order they run in.
    for option in (option for found in find_filters(kind) for option in options_of(found, kind)):
        if option.metavar is None:
            parser.add_argument(option.name, action="store_true", help=option.help)
        else:
            default = "" if option.default is None else f" (default: {option.default})"
            parser.add_argument(
                option.name, type=option.type, metavar=option.metavar, help=option.help + default
            )
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        dest="filters",
        type=str,
        metavar="MODULE:NAME[=X]",
        help="drop also what this filter of yours does not accept, at the threshold X; found from "
        "the current folder, see docs/corpora.md; may be repeated",
    )


def filter_job_options(args: argparse.Namespace) -> dict:
    """Returns the arguments of a filter command as arguments of its job."""
    options = dict(vars(args))
    options["megabytes_per_shard"] = options.pop("shard_megabytes")
    return options | {"max_per_language": args.max_per_language or None}


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_bitext
    from beam_pipelines.reporting import format_report

    print(format_report(filter_bitext.run(**filter_job_options(args))))
