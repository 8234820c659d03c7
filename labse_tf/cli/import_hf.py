"""`labse import-hf`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labse_tf.cli.arguments import add_languages, add_model_dir_output, add_options
from labse_tf.cli.export import write
from labse_tf.errors import InputError

EXAMPLES = """examples:
  labse import-hf LaBSE --out model
  labse import-hf LaBSE --out model --length 64 --format hub,hf

HF_DIR is a downloaded snapshot with config.json, vocab.txt and model.safetensors, such as
sentence-transformers/LaBSE or setu4993/LaBSE. If it has a modules.json (sentence-transformers), its
Dense module becomes the pooler. Pickles are never loaded."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "source HF_DIR: a folder with a Hugging Face LaBSE")
    add_model_dir_output(parser)
    add_languages(parser)


def run(args: argparse.Namespace) -> None:
    if not Path(args.source, "config.json").is_file():
        remedy = "name the folder of a Hugging Face LaBSE"
        raise InputError("has no config.json", path=args.source, remedy=remedy)
    write(args)
