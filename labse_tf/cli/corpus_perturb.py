"""`labse corpus perturb`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import OVERWRITE, add_options

EXAMPLES = """examples:
  labse corpus perturb flores/eng_Latn.devtest --out perturbed.tsv
  labse eval xsim model --data flores --perturbed perturbed.tsv

Makes English sentences with another meaning and nearly the same words: another number, another
name, a negation or an opposite. Each line of FILE has the number of the sentence, the kind
(number, entity, negation) and the text. The same input and seed give the same file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        text TEXT: English, a sentence a line
        --out FILE!: file to write
        --per-kind N=4: at most so many texts of a kind for a sentence
        --seed N=0: (default: %(default)s)
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from collections import Counter

    from labse_tf.errors import InputError
    from labse_tf.evaluation.tasks.xsim import perturb
    from labse_tf.evaluation.texts import read_texts
    from labse_tf.files.outputs import whole_file
    from labse_tf.files.textio import open_to_write

    if args.per_kind < 1:
        raise InputError(f"--per-kind is {args.per_kind}", remedy="give 1 or more")
    texts = read_texts(args.text)
    counts: Counter[str] = Counter()
    with (
        whole_file(args.out, overwrite=args.overwrite) as partial,
        open_to_write(partial, name=args.out) as output,
    ):
        for place, kind, text in perturb(texts, per_kind=args.per_kind, seed=args.seed):
            output.write(f"{place + 1}\t{kind}\t{' '.join(text.split())}\n")
            counts[kind] += 1
    made = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"{args.out}: {made or 'nothing'}; from {len(texts)} sentences")
