"""Makes the corpora on which `benchmarks.corpora.cds` measures contrastive data selection.

    python -m benchmarks.corpora.cds_data LANGUAGE PAIRS.tsv... --out DIR [--trusted 5000] \\
        [--test 4000]

Writes, as TSV: noisy/LANGUAGE (half real pairs, half shuffled), trusted/LANGUAGE (real pairs), and
for the measurement good.tsv and bad.tsv (which share no sentence with the other files, on either
side) and seen_good.tsv and seen_bad.tsv (samples of the two halves of the noisy corpus).

A shuffled pair has the target of another pair whose target has the same number of characters and
whose source about the same: lengths, letters and language do not give it away.
"""

from __future__ import annotations

import argparse
import collections
import random
from collections.abc import Sequence
from pathlib import Path

from labse_tf.files.textio import read_pairs

_Pair = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("language")
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trusted", type=int, default=5000)
    parser.add_argument("--test", type=int, default=4000)
    args = parser.parse_args()
    generator = random.Random(1)
    pairs = sorted({(one, other) for path in args.pairs for _, one, other in read_pairs(path)})
    generator.shuffle(pairs)
    test, rest = split_apart(pairs, args.test, generator)
    trusted, rest = rest[: args.trusted], rest[args.trusted :]
    good, bad = spoil_half(rest, generator)
    noisy = good + bad
    generator.shuffle(noisy)
    test_good, test_bad = spoil_half(test, generator)
    known = set(pairs)
    step = max(1, len(bad) // (args.test // 2))
    for name, rows in (
        (f"noisy/{args.language}.tsv", noisy),
        (f"trusted/{args.language}.tsv", trusted),
        ("good.tsv", test_good),
        ("bad.tsv", [pair for pair in test_bad if pair not in known]),
        ("seen_good.tsv", good[::step]),
        ("seen_bad.tsv", [pair for pair in bad[::step] if pair not in known]),
    ):
        write_pairs(args.out / name, rows)


def split_apart(
    pairs: Sequence[_Pair], size: int, generator: random.Random
) -> tuple[list[_Pair], list[_Pair]]:
    """Returns `size` pairs that share no sentence, on either side, with the rest; and the rest."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while node in parent and parent[node] != node:
            parent[node] = parent.get(parent[node], parent[node])
            node = parent[node]
        return node

    for source, target in pairs:
        parent[root(f"source {source}")] = root(f"target {target}")
    groups = collections.defaultdict(list)
    for pair in pairs:
        groups[root(f"source {pair[0]}")].append(pair)
    groups = list(groups.values())
    generator.shuffle(groups)
    small = [group for group in groups if len(group) <= 3][:size]
    taken = {id(group) for group in small}
    rest = [pair for group in groups if id(group) not in taken for pair in group]
    generator.shuffle(rest)
    return [group[0] for group in small], rest


def spoil_half(pairs: Sequence[_Pair], generator: random.Random) -> tuple[list[_Pair], list[_Pair]]:
    """Returns the first half as it is, and the second with targets swapped."""
    half = len(pairs) // 2
    return list(pairs[:half]), swap_targets(pairs[half:], generator)


def swap_targets(pairs: Sequence[_Pair], generator: random.Random) -> list[_Pair]:
    """Returns the pairs with targets swapped between pairs of nearly equal lengths."""
    order = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), generator.random()))
    swapped = []
    for first, second in zip(order[::2], order[1::2], strict=False):
        swapped += [(first[0], second[1]), (second[0], first[1])]
    return swapped


def write_pairs(path: Path, rows: Sequence[_Pair]) -> None:
    """Writes a TSV file, creates its folder, and prints the number of pairs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), "utf-8")
    print(f"{path}: {len(rows)} pairs")


if __name__ == "__main__":
    main()
