"""The option --max-bytes-per-word, of the commands that split words."""

from __future__ import annotations

import argparse


def add_word_limit(parser: argparse.ArgumentParser) -> None:
    """Adds the option; `word_limit` returns its value."""
    parser.add_argument(
        "--max-bytes-per-word",
        type=int,
        metavar="N",
        help="longer words become [UNK] (default: as in training, tokenizer.max_bytes_per_word)",
    )


def word_limit(args: argparse.Namespace) -> int:
    """Returns the longest word that is split, in bytes of UTF-8.

    Raises:
      InputError: if it is below 1.
    """
    from labse_tf.config import TokenizerConfig
    from labse_tf.errors import InputError

    limit = args.max_bytes_per_word
    if limit is None:
        return TokenizerConfig().max_bytes_per_word
    if limit < 1:
        raise InputError(f"--max-bytes-per-word is {limit}", remedy="give 1 or more")
    return limit
