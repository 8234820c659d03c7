"""`labse import-laser`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_model_dir_output

EXAMPLES = """examples:
  labse import-laser laser2.pt laser2.spm --out model
  labse import-laser laser2.pt laser2.spm --out model --format hub,text,onnx

Takes LASER2 as published: the encoder, and its SentencePiece model. The result is a model dir like
any other: embed, eval, mine, score and corpus embed read it. Texts are cut to 512 tokens, unless
--length says less. Nothing in
the file is run: only tensors and containers are read. LASER3, a Transformer of fairseq, is refused.
The formats hf and lite cannot hold it. Mind the licence of the weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("weights", metavar="LASER.pt", help="the encoder, such as laser2.pt")
    parser.add_argument("pieces", metavar="LASER.spm", help="SentencePiece model, as laser2.spm")
    add_model_dir_output(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.files.outputs import check_free

    check_free(args.out, overwrite=args.overwrite)
    from export.laser import import_laser
    from labse_tf.model.laser_weights import MAX_POSITIONS

    import_laser(
        args.weights,
        args.pieces,
        args.out,
        formats=args.formats.split(","),
        length=args.length or MAX_POSITIONS,
        table=args.table,
        licence=args.licence,
        verified=not args.no_verify,
        overwrite=args.overwrite,
    )
