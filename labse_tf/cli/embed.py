"""`labse embed`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_overwrite

EXAMPLES = """examples:
  labse embed model sentences.txt --out vectors.npy
  labse embed model sentences.txt --out vectors.npy --dtype float16
  labse embed model/onnx/model_int8.onnx sentences.txt.zst --out vectors.parquet
  zcat news.txt.gz | labse embed model - --out vectors.npy

Row i of the file is the unit vector of line i (an empty line has one too). Map it into memory with
numpy.load(FILE, mmap_mode="r"); `labse mine --embeddings` does so. A Parquet file has the columns
`line` (from 1) and `vector`.

MODEL is a model dir, an encoder in it (onnx/model.onnx, onnx/model_int8.onnx,
lite/encoder_int8.tflite), a sentence-transformers folder or module:attribute of a Python object
with encode(). Lines longer than the model's length are truncated; the command prints how many.

Finished work is kept in FILE.work: to resume an interrupted job, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model_dir", metavar="MODEL")
    parser.add_argument("input", metavar="INPUT", help="one sentence per line; - reads stdin")
    parser.add_argument("--out", required=True, metavar="FILE", help=".npy or .parquet")
    parser.add_argument(
        "--dtype",
        choices=["float32", "float16"],
        default="float32",
        help="type of the vectors; float16 takes half the space and changes a cosine by less than "
        "0.001 (default: %(default)s)",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.embedding.file import embed_file

    embed_file(args.model_dir, args.input, args.out, dtype=args.dtype, overwrite=args.overwrite)
