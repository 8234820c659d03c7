"""`labse embed`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_dim, add_normalize, add_overwrite

EXAMPLES = """examples:
  labse embed model sentences.txt --out vectors.npy
  labse embed model sentences.txt --out vectors.npy --dtype float16
  labse embed model sentences.txt --out vectors.npy --dim 64
  labse embed model sentences.txt --out vectors.npy --dtype int8
  labse embed model/onnx/model_int8.onnx sentences.txt.zst --out vectors.parquet
  zcat news.txt.gz | labse embed model - --out vectors.npy

Row i of the file is the unit vector of line i (an empty line has one too). Map it into memory with
numpy.load(FILE, mmap_mode="r"); `labse mine --embeddings` does so. A Parquet file has the columns
`line` (from 1) and `vector`. Quantised vectors (int8, binary) need vectors.npy.calibration.json,
which is written beside them.

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
        choices=["float32", "float16", "int8", "binary"],
        default="float32",
        help="type of the vectors; float16 takes half the space and changes a cosine by less than "
        "0.001; int8 takes a quarter; binary, one bit per number, a 32nd, for `labse mine "
        "--rescore`; the last two for .npy only (default: %(default)s)",
    )
    add_dim(parser)
    parser.add_argument(
        "--language",
        type=str,
        metavar="CODE",
        help="only for LASER's encoder of 2018, which splits text by the rules of its language: "
        "that of all lines, such as fr (default: identified for each line)",
    )
    add_normalize(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.embedding.file import embed_file
    from labse_tf.embedding.open import open_encoder

    names = ("dtype", "dim", "language", "normalize", "overwrite")
    options = {name: getattr(args, name) for name in names}
    embed_file(args.model_dir, args.input, args.out, open_encoder=open_encoder, **options)
