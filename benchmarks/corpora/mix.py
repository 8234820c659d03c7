"""Makes the corpora that `benchmarks.corpora.effect` trains on: half good pairs, half noise.

    python -m benchmarks.corpora.mix de PAIRS.tsv... --other fr FR.tsv... --out DIR
        [--good 60000] [--trusted 5000] [--held-out 4000] [--max-characters 100]

Writes, as TSV: clean/de (the good pairs), noisy/de (these and as many noisy ones), trusted/de, and
for the AUC of contrastive data selection good.tsv and bad.tsv (targets swapped between pairs of
equal lengths), which share no sentence with the others. No pair is in more than one of clean,
trusted and the pairs that the noise was made from.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from beam_pipelines.records.records import Pair
from benchmarks.corpora.bitext_noise import MAKERS, Corpus
from benchmarks.corpora.cds_data import split_apart, spoil_half, swap_targets, write_pairs
from labse_tf.files.textio import read_pairs

# Half of the noise can be recognised only by meaning; the rest is divided among these kinds.
_KINDS = (
    "wrong language",
    "source not English",
    "truncated side",
    "copied source",
    "shuffled words",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("language")
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--other", nargs="+", required=True, metavar=("LANGUAGE", "TSV"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--good", type=int, default=60_000)
    parser.add_argument("--trusted", type=int, default=5000)
    parser.add_argument("--held-out", type=int, default=4000)
    parser.add_argument("--max-characters", type=int, default=100)
    args = parser.parse_args()
    generator = random.Random(1)
    pairs = _read(args.pairs, args.max_characters)
    generator.shuffle(pairs)
    held_out, rest = split_apart(pairs, args.held_out, generator)
    trusted, rest = rest[: args.trusted], rest[args.trusted :]
    other, *paths = args.other
    write_pairs(args.out / f"pool/{args.language}.tsv", rest)
    write_pairs(args.out / f"pool/{other}.tsv", _read(paths, args.max_characters))
    corpus = Corpus(str(args.out / "pool"), [args.language], args.good)
    clean = [pair[:2] for pair in corpus.good[args.language]]
    noisy = clean + _make_noise(corpus, args.language, len(clean), generator)
    generator.shuffle(noisy)
    good, bad = spoil_half(held_out, generator)
    known = set(pairs)
    write_pairs(args.out / f"clean/{args.language}.tsv", clean)
    write_pairs(args.out / f"noisy/{args.language}.tsv", noisy)
    write_pairs(args.out / f"trusted/{args.language}.tsv", trusted)
    write_pairs(args.out / "good.tsv", good)
    write_pairs(args.out / "bad.tsv", [pair for pair in bad if pair not in known])


def _read(paths: Sequence[str], max_characters: int) -> list[tuple[str, str]]:
    pairs = {tuple(sides) for path in paths for _, *sides in read_pairs(path)}
    return sorted(pair for pair in pairs if max(map(len, pair)) <= max_characters)


def _make_noise(
    corpus: Corpus, language: str, size: int, generator: random.Random
) -> list[tuple[str, str]]:
    """Returns `size` noisy pairs, or fewer if the spare pairs do not yield enough."""
    spare = corpus.spare[language]
    swapped, rest = spare[: size // 2], spare[size // 2 :]
    noise = swap_targets([pair[:2] for pair in swapped], generator)
    for kind in _KINDS:
        made: list[Pair] = []
        while rest and len(made) < size // 2 // len(_KINDS):
            pair = MAKERS[kind](rest.pop(), corpus, generator)
            if pair:
                made.append(pair)
        print(f"{kind}: {len(made)} pairs")
        noise += [pair[:2] for pair in made]
    return noise


if __name__ == "__main__":
    main()
