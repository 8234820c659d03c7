"""The programs behind measurements in docs/; each says in its docstring how to run it."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def make_parser(docstring: str | None, *places: str, **options: Any) -> argparse.ArgumentParser:
    """Returns a parser whose help is the module's docstring as it stands.

    Args:
      docstring: of the module.
      places: positional arguments, which are paths.
      options: the default of each, of its type; False: a flag; a type: None; a list: repeatable.
    """
    parser = argparse.ArgumentParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for place in places:
        parser.add_argument(place, type=Path, metavar=place.upper())
    for name, default in options.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(default, list):
            parser.add_argument(option, action="append", default=default)
        elif isinstance(default, type):
            parser.add_argument(option, type=default)
        else:
            parser.add_argument(option, type=type(default), default=default, help=f"({default})")
    return parser


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes a file, and makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
