"""`labse translate`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import OVERWRITE, add_options

EXAMPLES = """examples:
  labse translate runs/laser sentences.txt --to en --out english.txt
  labse translate runs/laser sentences.txt.gz --to es --out spanish.txt --beam 1
  labse translate runs/cds english.txt --to de --out german.txt

RUN is a run dir of `labse train-laser`, which translates from any of its languages into its
targets, or of `labse corpus train-cds`, which translates from English. Line i of the file is the
translation of line i; its spaces beside punctuation follow the rules of the scripts, as WordPieces
do not tell them. `labse eval translation` gives its BLEU."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        run RUN: of `labse train-laser` or `labse corpus train-cds`
        input INPUT: one sentence per line
        --to CODE!: the language, such as en
        --out FILE!: one translation per line
        --beam N=4: translations that are kept at each token; 1 is fastest
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free_file, whole_file
    from labse_tf.files.textio import read_lines
    from labse_tf.languages import require_code

    if args.beam < 1:
        raise InputError(f"--beam is {args.beam}", remedy="it must be 1 or more")
    language = require_code(args.to)
    check_free_file(args.out, overwrite=args.overwrite)
    texts = [line for _, line in read_lines(args.input)]
    from labse_tf.systems.laser.translators import open_translator

    translations = open_translator(args.run, beam_size=args.beam).translate(texts, language)
    with whole_file(args.out, overwrite=args.overwrite) as partial:
        partial.write_text("".join(f"{one}\n" for one in translations), "utf-8")
