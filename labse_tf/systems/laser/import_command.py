"""`labse import-laser`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_model_dir_output, add_options

EXAMPLES = """examples:
  labse import-laser laser2.pt laser2.spm --out model
  labse import-laser laser2.pt laser2.spm --out model --format hub,text,onnx
  labse import-laser bilstm.93langs.2018-12-26.pt 93langs.fcodes --out model

Takes LASER2 as published: the encoder, and its SentencePiece model. The result is a model dir like
any other: embed, eval, mine, score and corpus embed read it.

Or takes the encoder of 2018, and its codes, beside which 93langs.fvocab must be. Its text is
prepared in Python, for which it needs sacremoses, for Chinese jieba, for Japanese mecab-python3 and
ipadic, for Greek transliterate: pip install 'labse-tf[laser]'. The result has no preprocessor, so
only this package reads it, with the same commands; the formats are hub and onnx (default: hub).

Texts are cut to 512 tokens, unless --length says less. Nothing in the file is run: only tensors and
containers are read. LASER3, a Transformer, is refused. The formats hf and lite cannot
hold an LSTM. Mind the licence of the weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        weights LASER.pt: the encoder, such as laser2.pt
        pieces LASER.spm: SentencePiece model, as laser2.spm; or codes of fastBPE, named .fcodes
        """,
    )
    add_model_dir_output(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.files.outputs import check_free

    check_free(args.out, overwrite=args.overwrite)
    from labse_tf.systems.laser import import_laser as importing

    files = (args.weights, args.pieces, args.out)
    options = {name: getattr(args, name) for name in ("table", "licence", "overwrite")}
    options["length"] = args.length or importing.MAX_POSITIONS
    if args.pieces.endswith(importing.CODES_SUFFIX):
        # The default of --format is for other models.
        formats = "hub" if args.formats == "hub,text" else args.formats
        importing.import_laser_2018(*files, formats=formats.split(","), **options)
        return
    options["verified"] = not args.no_verify
    importing.import_laser(*files, formats=args.formats.split(","), **options)
