"""`labse import-hf`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labse_tf.cli.arguments import add_languages, add_model_dir_output
from labse_tf.cli.export import write
from labse_tf.errors import InputError

EXAMPLES = """examples:
  labse import-hf LaBSE --out model
  labse import-hf LaBSE --out model --length 64 --format hub,hf

HF_DIR has config.json, vocab.txt and model.safetensors, as sentence-transformers/LaBSE and
setu4993/LaBSE have them: a snapshot that was fetched before. If modules.json makes it one of
sentence-transformers, its Dense module is the pooler. Pickles are never loaded."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="HF_DIR", help="a folder with a Hugging Face LaBSE")
    add_model_dir_output(parser)
    add_languages(parser)


def run(args: argparse.Namespace) -> None:
    if not Path(args.source, "config.json").is_file():
        raise InputError(
            "has no config.json", path=args.source, remedy="name the folder of a Hugging Face LaBSE"
        )
    write(args)
