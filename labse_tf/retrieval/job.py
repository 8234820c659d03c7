"""`labse mine`: finds translations in two files of sentences."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files.outputs import (
    check_free_file,
    describe_files,
    describe_model,
    full_disk_said,
    whole_file,
    work_folder,
)
from labse_tf.files.textio import open_to_write
from labse_tf.retrieval.array_like import ArrayLike
from labse_tf.retrieval.embedding import embed_sides
from labse_tf.retrieval.gold import measure, read_gold
from labse_tf.retrieval.margin import MARGINS
from labse_tf.retrieval.mining import RETRIEVALS, Pairs, mine_pairs
from labse_tf.retrieval.search import INDEXES, search_both
from labse_tf.retrieval.sentences import NOWHERE, Sentences, read_sentences
from labse_tf.retrieval.vectors import Selection, is_binary, map_vectors

GO_ON = "run the same command again to resume"
_SEPARATORS = re.compile(r"[\t\r\n]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Options of mining.

    Attributes:
      neighbours: k of the margin, and the number of candidates per sentence.
      margin: one of MARGINS.
      retrieval: one of RETRIEVALS.
      one_to_one: whether a sentence is in at most one pair; None: only with `max`.
      threshold: the lowest score to keep; None for all, or the best threshold on the gold pairs.
      index: one of INDEXES.
      recall: the share of true neighbours that an approximate search should find.
      dim: the number of leading columns of the model's vectors that are used; None: all.
      candidates: how many per sentence are rescored; None: see `search_both`.
    """

    neighbours: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    one_to_one: bool | None = None
    threshold: float | None = None
    index: str = "auto"
    recall: float = 0.95
    dim: int | None = None
    candidates: int | None = None

    @property
    def is_one_to_one(self) -> bool:
        """The value of `one_to_one`, with None resolved."""
        return self.retrieval == "max" if self.one_to_one is None else self.one_to_one

    def __post_init__(self) -> None:
        """Raises InputError if a value is out of range."""
        if self.neighbours < 1:
            raise InputError(f"--neighbours is {self.neighbours}", remedy="give 1 or more")
        if self.candidates is not None and self.candidates < self.neighbours:
            raise InputError(
                f"--candidates is {self.candidates}",
                remedy=f"give as many as --neighbours ({self.neighbours}) or more",
            )
        if self.threshold is not None and math.isnan(self.threshold):
            raise InputError("--threshold is not a number", remedy="give a number")
        if not 0 < self.recall <= 1:
            raise InputError(f"--recall is {self.recall}", remedy="give more than 0, at most 1")
        for name, known in (("margin", MARGINS), ("retrieval", RETRIEVALS), ("index", INDEXES)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"--{name} is '{getattr(self, name)}'", remedy=f"give one of {', '.join(known)}"
                )


def mine(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    model: str | None = None,
    open_encoder: Callable[..., Encoder] | None = None,
    embeddings: tuple[str, str] | None = None,
    rescore: tuple[str, str] | None = None,
    gold: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the pairs found to `out`, a TSV of score, source and target, the best first.

    Finished work is kept in `OUT.work`, so that an interrupted job can resume.

    Args:
      source: a file with one sentence per line.
      target: likewise.
      out: the output file, compressed according to its extension.
      model: the name of the encoder.
      open_encoder: opens it, with `dim`; called only if there is something to embed.
      embeddings: used instead of a model: vectors of the lines of both files, see `open_vectors`.
      rescore: the same vectors, less or not quantised. Candidates are then found with `embeddings`
        and compared by these, see `search_both`.
      gold: a TSV of line numbers, see `read_gold`.
      options: how to mine.
      overwrite: replace `out`, and discard the work of a job with other settings.

    Returns:
      The report.

    Raises:
      InputError: if an input is missing or broken, the output exists or the disk is full.
    """
    options = options or Options()
    if rescore and not embeddings:
        raise InputError("--rescore without --embeddings", remedy="add the vectors to search with")
    if options.candidates and not rescore:
        raise InputError("--candidates without --rescore", remedy="add the vectors to rescore by")
    out = check_free_file(out, overwrite=overwrite)
    sides = [read_sentences(source), read_sentences(target)]
    pairs_known = read_gold(gold, *sides) if gold else None
    settings = {
        "source": describe_files(Path(source)),
        "target": describe_files(Path(target)),
        "vectors": [describe_files(Path(path)) for path in embeddings or ()],
        "rescore": [describe_files(Path(path)) for path in rescore or ()],
        "model": None if embeddings else describe_model(str(model)),
        "neighbours": options.neighbours,
        "index": options.index,
        "recall": options.recall,
        "dim": options.dim,
        "candidates": options.candidates,
    }
    clock = _Clock()
    with (
        full_disk_said(out, remedy=GO_ON),
        work_folder(out, settings, overwrite=overwrite) as folder,
    ):
        if embeddings:
            vectors = open_pair(sides, embeddings)
        else:
            vectors = embed_sides(sides, folder, lambda: open_encoder(model, dim=options.dim))
        exact = open_exact(sides, rescore, dim=vectors[0].shape[1]) if rescore else None
        clock.lap("vectors")
        forward, backward, searched = search_both(
            *vectors,
            options.neighbours,
            folder,
            index=options.index,
            recall=options.recall,
            rescored_by=exact,
            candidates=options.candidates,
        )
        clock.lap("search")
        pairs = mine_pairs(
            forward,
            backward,
            margin=options.margin,
            retrieval=options.retrieval,
            one_to_one=options.is_one_to_one,
        )
        report = {
            "options": dataclasses.asdict(options) | {"one_to_one": options.is_one_to_one},
            "source": {"file": os.fspath(source)} | sides[0].facts(),
            "target": {"file": os.fspath(target)} | sides[1].facts(),
            "dimension": vectors[0].shape[1],
            "search": searched,
            "pairs_found": len(pairs),
        }
        threshold = options.threshold
        if pairs_known:
            found = measure(pairs, pairs_known, threshold)
            threshold = found.threshold
            report["gold"] = {"file": os.fspath(gold), "pairs": len(pairs_known)}
            report["gold"] |= dataclasses.asdict(found)
        if threshold is not None:
            pairs = pairs[pairs.scores.astype(np.float64) >= threshold]
        _write(out, sides, pairs, overwrite=overwrite)
        clock.lap("pairs")
        report |= {"pairs": len(pairs), "seconds": clock.laps}
    return report


class _Clock:
    """Measures the seconds of each part of this run, without those of interrupted runs."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.laps[name] = round(now - self._last, 1)
        self._last = now


def open_pair(
    sides: list[Sentences], paths: tuple[str, str], *, dim: int | None = None
) -> list[ArrayLike]:
    """Opens the vectors of the lines of two files; returns those of their distinct sentences.

    Raises:
      InputError: as `open_vectors`, or if the number of rows differs from the number of lines.
    """
    opened: list[ArrayLike] = []
    for side, path in zip(sides, paths, strict=True):
        vectors = map_vectors(path, dim=opened[0].shape[1] if opened else dim)
        if len(vectors) != len(side.places):
            raise InputError(
                f"has {len(vectors)} rows, but {side.path} has {len(side.places)} lines",
                path=path,
                remedy="embed that file again with `labse embed`",
            )
        # The vector of an empty line is not used, so it may be anything.
        vectors.check(side.places != NOWHERE)
        whole = len(side.texts) == len(vectors)
        opened.append(vectors if whole else Selection(vectors, side.lines))
    return opened


def open_exact(sides: list[Sentences], paths: tuple[str, str], *, dim: int) -> list[ArrayLike]:
    """Opens the vectors to rescore by, as `open_pair`.

    Raises:
      InputError: as `open_pair`, or if they are binary.
    """
    for path in paths:
        if is_binary(map_vectors(path)):
            raise InputError(
                "holds binary vectors, which are not exact",
                path=path,
                remedy="rescore by float32, float16 or int8 vectors",
            )
    return open_pair(sides, paths, dim=dim)


def _write(out: Path, sides: list[Sentences], pairs: Pairs, *, overwrite: bool) -> None:
    with (
        whole_file(out, overwrite=overwrite) as partial,
        open_to_write(partial, name=out) as file,
    ):
        for source, target, score in zip(
            pairs.sources.tolist(), pairs.targets.tolist(), pairs.scores.tolist(), strict=True
        ):
            texts = (sides[0].texts[source], sides[1].texts[target])
            columns = (_SEPARATORS.sub(" ", text) for text in texts)
            file.write("\t".join([f"{score:.6f}", *columns]) + "\n")
