"""`labse embed`."""

from __future__ import annotations

import argparse
import sys

from labse_tf.cli.arguments import add_overwrite

EXAMPLES = """examples:
  labse embed model sentences.txt --out vectors.npy
  zcat news.txt.gz | labse embed model - --out vectors.npy

Row i of the file is the unit vector (float32) of line i; read it with numpy.load."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model_dir", metavar="MODEL_DIR")
    parser.add_argument("input", metavar="INPUT", help="a sentence a line; - reads stdin")
    parser.add_argument("--out", required=True, metavar="FILE.npy")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.outputs import whole_file
    from labse_tf.textio import lines_of_stream, read_lines

    with whole_file(args.out, overwrite=args.overwrite) as partial:
        standard_input = args.input == "-"
        numbered = (
            lines_of_stream(sys.stdin.buffer, "stdin") if standard_input else read_lines(args.input)
        )
        lines = [line for _, line in numbered]
        import numpy as np

        import labse_tf

        vectors = labse_tf.load(args.model_dir).encode(lines, show_progress=True)
        with open(partial, "wb") as file:
            np.save(file, vectors)
