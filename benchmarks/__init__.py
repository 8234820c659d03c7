"""The programs behind measurements in docs/; each says in its docstring how to run it."""

import argparse


def make_parser(docstring: str | None) -> argparse.ArgumentParser:
    """Returns a parser whose help is the module's docstring as it stands."""
    return argparse.ArgumentParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
