"""Makes the corpora for `benchmarks.corpora.cds` and `effect`: half good pairs, half noise.

    python -m benchmarks.corpora.mix de PAIRS.tsv... --other fr FR.tsv... --out DIR
        [--good 60000] [--trusted 5000] [--held-out 4000] [--max-characters 100]

Writes, as TSV: clean/de (the good pairs), noisy/de (these and as many noisy ones), trusted/de, and
for the AUC of contrastive data selection good.tsv and bad.tsv (targets swapped between pairs of
equal lengths), which share no sentence with the others. No pair is in more than one of clean,
trusted and the pairs that the noise was made from.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Sequence
from pathlib import Path

from beam_pipelines.records import Pair
from benchmarks import make_parser, write_lines
from benchmarks.corpora.bitext_noise import MAKERS, Corpus
from labse_tf.files.textio import read_pairs

_Pair = tuple[str, str]
# Half of the noise can be recognised only by meaning; the rest is divided among these kinds.
_KINDS = (
    "wrong language",
    "source not English",
    "truncated side",
    "copied source",
    "shuffled words",
)


def main() -> None:
    numbers = {"good": 60_000, "trusted": 5000, "held_out": 4000, "max_characters": 100}
    parser = make_parser(__doc__, **numbers)
    parser.add_argument("language")
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--other", nargs="+", required=True, metavar=("LANGUAGE", "TSV"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    generator = random.Random(1)
    pairs = _read(args.pairs, args.max_characters)
    generator.shuffle(pairs)
    held_out, rest = _split_apart(pairs, args.held_out, generator)
    trusted, rest = rest[: args.trusted], rest[args.trusted :]
    other, *paths = args.other
    _write_pairs(args.out / f"pool/{args.language}.tsv", rest)
    _write_pairs(args.out / f"pool/{other}.tsv", _read(paths, args.max_characters))
    corpus = Corpus(str(args.out / "pool"), [args.language], args.good)
    clean = [pair[:2] for pair in corpus.good[args.language]]
    noisy = clean + _make_noise(corpus, args.language, len(clean), generator)
    generator.shuffle(noisy)
    good, rest = held_out[: len(held_out) // 2], held_out[len(held_out) // 2 :]
    bad = _swap_targets(rest, generator)
    known = set(pairs)
    _write_pairs(args.out / f"clean/{args.language}.tsv", clean)
    _write_pairs(args.out / f"noisy/{args.language}.tsv", noisy)
    _write_pairs(args.out / f"trusted/{args.language}.tsv", trusted)
    _write_pairs(args.out / "good.tsv", good)
    _write_pairs(args.out / "bad.tsv", [pair for pair in bad if pair not in known])


def _read(paths: Sequence[str], max_characters: int) -> list[_Pair]:
    pairs = {tuple(sides) for path in paths for _, *sides in read_pairs(path)}
    return sorted(pair for pair in pairs if max(map(len, pair)) <= max_characters)


def _make_noise(corpus: Corpus, language: str, size: int, generator: random.Random) -> list[_Pair]:
    """Returns `size` noisy pairs, or fewer if the spare pairs do not yield enough."""
    spare = corpus.spare[language]
    swapped, rest = spare[: size // 2], spare[size // 2 :]
    noise = _swap_targets([pair[:2] for pair in swapped], generator)
    for kind in _KINDS:
        made: list[Pair] = []
        while rest and len(made) < size // 2 // len(_KINDS):
            pair = MAKERS[kind](rest.pop(), corpus, generator)
            if pair:
                made.append(pair)
        print(f"{kind}: {len(made)} pairs")
        noise += [pair[:2] for pair in made]
    return noise


def _split_apart(
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


def _swap_targets(pairs: Sequence[_Pair], generator: random.Random) -> list[_Pair]:
    """Returns the pairs with targets swapped between pairs of nearly equal lengths."""
    order = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), generator.random()))
    swapped = []
    for first, second in zip(order[::2], order[1::2], strict=False):
        swapped += [(first[0], second[1]), (second[0], first[1])]
    return swapped


def _write_pairs(path: Path, rows: Sequence[_Pair]) -> None:
    write_lines(path, map("\t".join, rows))
    print(f"{path}: {len(rows)} pairs")


if __name__ == "__main__":
    main()
