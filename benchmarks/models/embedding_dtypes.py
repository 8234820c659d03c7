"""The accuracy that quantised vectors lose on the Tatoeba test.

    python -m benchmarks.models.embedding_dtypes MODEL TATOEBA [--together] [--neighbours 4]

MODEL is any that `labse eval` takes, TATOEBA the folder that `labse eval tatoeba` takes. Prints, in
Markdown, the accuracy of each type of `labse embed --dtype` in per cent, averaged over languages,
as `labse eval tatoeba` does. Each side of a language is calibrated on its own, as a file of its
own. As many candidates are rescored as by `labse mine --rescore --neighbours N`. --together
searches instead for all foreign sentences among the English of all languages.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from labse_tf.cli.main import quiet_libraries
from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.open import open_encoder
from labse_tf.embedding.quantisation import QUANTISED, Binary
from labse_tf.evaluation.tasks.tatoeba import find_pairs
from labse_tf.evaluation.texts import read_aligned
from labse_tf.retrieval.hamming import nearest_bits
from labse_tf.retrieval.neighbours import nearest
from labse_tf.retrieval.rescoring import PER_NEIGHBOUR_IF_BINARY, rescore

_FLOATS = ("float32", "float16")


class Query(NamedTuple):
    """A search for the translations of some sentences.

    Attributes:
      direction: the name of the direction.
      queries: float32 `[n, dim]`.
      candidates: float32 `[m, dim]`.
      gold: `[n]`, the index of the right candidate of each query.
    """

    direction: str
    queries: np.ndarray
    candidates: np.ndarray
    gold: np.ndarray


class System(NamedTuple):
    """A way to keep vectors, and another to rescore by, if any: types of `labse embed`."""

    stored: str
    rescored_by: str | None = None


_SYSTEMS = (
    System("float32"),
    System("float16"),
    System("int8"),
    System("binary"),
    System("binary", "int8"),
    System("binary", "float32"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", metavar="TATOEBA")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--neighbours", type=int, default=4)
    args = parser.parse_args()
    quiet_libraries()
    vectors = _embed(args.model, args.data)
    count = PER_NEIGHBOUR_IF_BINARY * args.neighbours
    searches = list(_together(vectors) if args.together else _by_language(vectors))
    print_table(searches, count)


def _embed(model: str, data: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns for each language the vectors of the foreign and of the English sentences."""
    texts = {code: read_aligned(paths).values() for code, paths in find_pairs(data).items()}
    sides = (side for both in texts.values() for side in both)
    vectors = TextVectors(open_encoder(model), itertools.chain.from_iterable(sides))
    return {code: tuple(vectors[side] for side in both) for code, both in texts.items()}


def _by_language(vectors: dict[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[Query]:
    for foreign, english in vectors.values():
        own = np.arange(len(foreign))
        yield Query("xx → en", foreign, english, own)
        yield Query("en → xx", english, foreign, own)


def _together(vectors: dict[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[Query]:
    foreign, english = (np.concatenate(side) for side in zip(*vectors.values(), strict=True))
    distinct, gold = np.unique(english, axis=0, return_inverse=True)
    yield Query(f"xx → {len(distinct):,} en", foreign, distinct, gold.ravel())


def print_table(searches: Sequence[Query], count: int) -> None:
    """Prints the accuracy of all systems; `count` is the number of candidates to rescore."""
    directions = list(dict.fromkeys(search.direction for search in searches))
    heads = [
        "vectors",
        "bytes per vector",
        *directions,
        "lost, points",
        "CPU seconds of the search",
    ]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    dim = searches[0].queries.shape[1]
    whole = None
    for system in _SYSTEMS:
        found = {direction: [] for direction in directions}
        seconds = 0.0
        for search in searches:
            score, taken = _search(search, system, count)
            found[search.direction].append(100 * score)
            seconds += taken
        means = [float(np.mean(scores)) for scores in found.values()]
        mean = float(np.mean(means))
        whole = mean if whole is None else whole
        name, size = system.stored, f"{_bytes(system.stored, dim):,}"
        if system.rescored_by:
            name += f", {count} candidates rescored by {system.rescored_by}"
            size += f" + {_bytes(system.rescored_by, dim):,}"
        cells = [name, size, *(f"{score:.2f}" for score in means), f"{whole - mean:.2f}"]
        print(f"| {' | '.join(cells)} | {seconds:.1f} |", flush=True)


def _search(search: Query, system: System, count: int) -> tuple[float, float]:
    """Returns the accuracy, and the CPU seconds of searching and rescoring."""
    sides = search.queries, search.candidates
    k = min(count, len(search.candidates)) if system.rescored_by else 1
    if system.stored == Binary.kind:
        stored = [Binary.fit(side).quantise(side) for side in sides]
        nearest_stored = functools.partial(nearest_bits, dim=search.queries.shape[1])
    else:
        stored = [_as_read(side, system.stored) for side in sides]
        nearest_stored = nearest
    exact = [_as_read(side, system.rescored_by) for side in sides if system.rescored_by]
    start = time.process_time()
    found = nearest_stored(*stored, k)
    if exact:
        found = rescore(found, *exact, 1)
    seconds = time.process_time() - start
    return float(np.mean(found.indices[:, 0] == search.gold)), seconds


def _as_read(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Returns vectors as they are read from a file of that type."""
    if dtype in _FLOATS:
        return vectors.astype(dtype).astype(np.float32)
    calibration = QUANTISED[dtype].fit(vectors)
    return calibration.dequantise(calibration.quantise(vectors))


def _bytes(dtype: str, dim: int) -> int:
    if dtype in _FLOATS:
        return dim * np.dtype(dtype).itemsize
    return QUANTISED[dtype].fit(np.zeros((1, dim))).columns


if __name__ == "__main__":
    main()
