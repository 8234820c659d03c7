"""`labse embed`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import DIM, NORMALIZE, OVERWRITE, add_options

EXAMPLES = """examples:
  labse embed model sentences.txt --out vectors.npy
  labse embed model sentences.txt --out vectors.npy --dtype float16
  labse embed model sentences.txt --out vectors.npy --dim 64
  labse embed model sentences.txt --out vectors.npy --dtype int8
  labse embed model/onnx/model_int8.onnx sentences.txt.zst --out vectors.npy
  zcat news.txt.gz | labse embed model - --out vectors.npy

Row i of the file is the unit vector of line i (an empty line has one too). Map it into memory with
numpy.load(FILE, mmap_mode="r"); `labse mine --embeddings` does so. Quantised vectors (int8, binary)
need vectors.npy.calibration.json, which is written beside them.

MODEL is a model dir, an encoder in it (onnx/model.onnx, onnx/model_int8.onnx,
lite/encoder_int8.tflite), a sentence-transformers folder or module:attribute of a Python object
with encode(). Lines longer than the model's length are truncated; the command prints how many.

Finished work is kept in FILE.work: to resume an interrupted job, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        model_dir MODEL
        input INPUT: one sentence per line; - reads stdin
        --out FILE.npy!
        --dtype {float32,float16,int8,binary}=float32: type of the vectors; float16 takes half the
          space and changes a cosine by less than 0.001; int8 takes a quarter; binary, one bit per
          number, a 32nd, for `labse mine --rescore`
        """,
        DIM,
        """
        --language CODE: only for LASER's encoder of 2018, which splits text by the rules of its
          language: that of all lines, such as fr (default: identified for each line)
        """,
        NORMALIZE,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.embedding.file import embed_file
    from labse_tf.embedding.open import open_encoder

    options = dict(vars(args))
    paths = [options.pop(name) for name in ("model_dir", "input", "out")]
    embed_file(*paths, open_encoder=open_encoder, **options)
