"""The configuration of each command that has one."""

from __future__ import annotations

import importlib

from labse_tf.cli.main import COMMANDS, load_command, make_parser


def find_kinds() -> dict[str, type]:
    """Returns the words of each command that trains -> the class of its configuration."""
    kinds = {}
    for words in COMMANDS:
        parser = make_parser(words, load_command(words))
        if name := parser.get_default("config_kind"):
            module, _, attribute = name.partition(":")
            kinds[" ".join(words)] = getattr(importlib.import_module(module), attribute)
    return kinds


KINDS = find_kinds()
