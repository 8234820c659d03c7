"""How many mined negatives are unknown translations, for several rules that leave out targets.

    python -m benchmarks.training.hard_negatives MODEL CORPUS [--languages de,fr] [--count 3] \\
        [--out FILE.md]

MODEL is a model for `labse mine-negatives --model`, CORPUS holds `<lang>.tsv[.gz|.xz]`. If sources
a and b share a target, the other targets of b most likely translate a, too, though no pair says so.
`labse mine-negatives` recognises them by the shared target. This is disabled here, so that they are
like unknown translations: targets of another source. For the sources that have such targets, prints
their share among the negatives, for each rule that leaves out targets:

- near target: those more similar than the limit to a target of the source;
- near source: those paired with a source more similar than the limit to the source;
- either;
- nearer: those more similar to the source than its nearest target, by more than the limit;
- below share: those whose similarity to the source exceeds this share of its nearest target's.

`similarity` is the mean similarity of the negatives to the source, `full` the share of sources with
all negatives among the nearest 60 targets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from labse_tf.files.corpus_files import BITEXT, find_plain_files
from labse_tf.systems.hard_negatives import mine as job
from labse_tf.systems.hard_negatives.open_model import open_model
from labse_tf.systems.hard_negatives.pool import make_pool, translations
from labse_tf.systems.hard_negatives.selection import Search

_CANDIDATES = 60
_ROWS = 512
_MOST_PAIRS = 40_000

# Arrays [sources, candidates], and `translation` [sources, 1].
_Facts = dict[str, np.ndarray]


def _rules() -> Iterator[tuple[str, Callable[[_Facts], np.ndarray]]]:
    yield "none", lambda facts: np.zeros_like(facts["direct"])
    for limit in (0.95, 0.9, 0.85, 0.8, 0.7):
        yield f"near target {limit}", lambda f, x=limit: f["near_target"] > x
        yield f"near source {limit}", lambda f, x=limit: f["near_source"] > x
        yield (
            f"either {limit}",
            lambda f, x=limit: np.maximum(f["near_target"], f["near_source"]) > x,
        )
    for limit in (0.1, 0.0, -0.1):
        yield f"nearer {limit}", lambda f, x=limit: f["similarity"] - f["translation"] > x
    yield "below share 0.95", lambda f: f["similarity"] > 0.95 * f["translation"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("corpus")
    parser.add_argument("--languages", default="")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--out")
    args = parser.parse_args()
    encoder, _ = open_model(args.model)
    parts, lines = [], []
    files = find_plain_files([args.corpus], kind=BITEXT)
    wanted = set(args.languages.split(",")) - {""}
    for language, group in groupby(sorted(files, key=job._language), key=job._language):
        if not wanted or language in wanted:
            facts = _measure(sorted(group), encoder)
            if facts:
                parts.append(facts)
                print(language, len(facts["direct"]), flush=True)
    facts = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    lines = [
        f"{len(facts['direct'])} sources in {len(parts)} languages",
        "",
        "| left out | unknown translations, % | similarity | full, % |",
        "|---|---|---|---|",
    ]
    for name, rule in _rules():
        lines.append(_row(name, facts, rule(facts), args.count))
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)


def _row(name: str, facts: _Facts, left_out: np.ndarray, count: int) -> str:
    good = ~(facts["direct"] | left_out)
    chosen = good & (np.cumsum(good, axis=1) <= count)
    share = 100 * facts["unknown"][chosen].mean()
    full = 100 * (chosen.sum(axis=1) == count).mean()
    return f"| {name} | {share:.2f} | {facts['similarity'][chosen].mean():.3f} | {full:.1f} |"


def _measure(files, encoder) -> _Facts:
    ((sources, targets),) = job._pools(files, 1, Path())
    pool = make_pool(sources[:_MOST_PAIRS], targets[:_MOST_PAIRS])
    links = pool.links()
    known = translations(links)
    rows = np.flatnonzero((known > 0).sum(axis=1) > (links > 0).sum(axis=1))
    search = Search(pool, encoder.encode(pool.sources), encoder.encode(pool.targets))
    own = search.similarity_of_translations()
    found: dict[str, list[np.ndarray]] = {}
    depth = min(_CANDIDATES, len(pool.targets))
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        similarity, nearest = search.nearest(some, depth)
        places = np.arange(len(some))[:, np.newaxis], nearest
        direct = links[some].toarray()[places] > 0
        facts = {
            "direct": direct,
            "unknown": (known[some].toarray()[places] > 0) & ~direct,
            "similarity": similarity,
            "near_target": search.to_targets(some, nearest),
            "near_source": search.to_sources(some, nearest),
        }
        for name, values in facts.items():
            # Missing candidates are treated as known translations.
            padding = ((0, 0), (0, _CANDIDATES - depth))
            padded = np.pad(values, padding, constant_values=name == "direct")
            found.setdefault(name, []).append(padded)
        found.setdefault("translation", []).append(own[some, np.newaxis])
    return {name: np.concatenate(values) for name, values in found.items()}


if __name__ == "__main__":
    main()
