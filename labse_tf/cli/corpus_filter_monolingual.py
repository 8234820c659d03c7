"""`labse corpus filter-monolingual`: filters, deduplicates and shards monolingual text."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_options
from labse_tf.cli.corpus_filter_bitext import add_filter_job, filter_job_options
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
    add_options(
        parser,
        """
        --min-language-confidence P=0.5: drop lines of web pages identified with less, 0 to 1
          (default: %(default)s)
        --[no-]split-sentences: make each sentence a record (default: of pages, not of lines)
        --[no-]c4: apply the heuristics of C4 (default: to pages, not to lines)
        --neighbours: make records of two adjacent sentences; an empty line is a break, and so is
          whatever is dropped
        """,
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import filter_monolingual
    from beam_pipelines.reporting import format_report

    print(format_report(filter_monolingual.run(**filter_job_options(args))))
