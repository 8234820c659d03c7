"""`labse corpus embed`: embeds monolingual text into shards of vectors."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, add_options

EXAMPLES = """examples:
  labse corpus embed clean/monolingual --model model --out vectors
  labse corpus embed de.txt.gz en.txt.gz --model model --out vectors --dtype float32
  labse corpus embed 'web/*.txt.zst' --model model --out vectors --max-bad-records 100
  labse corpus embed clean --model model --out vectors -- --runner=FlinkRunner \\
      --flink_master=HOST:8081

Input is <lang>.txt[.gz|.xz|.bz2|.zst] (one sentence per line), Parquet, TFRecord, or the clean
shards of `labse corpus filter-monolingual`, which also drops duplicates; see docs/files.md.

Writes DIR/<lang>/part-?????-of-?????.npy, for each the same sentences as .txt.gz (line i for row
i), and DIR/report.json. The order is that of the files, and of the lines within a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        INPUTS,
        """
        --model MODEL_DIR!: a model dir from `labse export`, or an encoder in it:
          MODEL_DIR/onnx/model_int8.onnx
        --out DIR!: folder to write
        --dtype TYPE=float16: type of the vectors: float16, half the size, or float32
        --shard-sentences N=250_000: sentences per shard; 250,000 of 768 dimensions take 384 MB in
          float16
        --max-bad-records N=0: drop up to N lines or records that cannot be read (default:
          %(default)s, the first ends the job)
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines import embed_texts
    from beam_pipelines.reporting import format_report

    options = dict(vars(args))
    report = embed_texts.run(sentences_per_shard=options.pop("shard_sentences"), **options)
    print(format_report(report))
