"""`labse mine`: finds translations in two files of sentences."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from labse_tf.retrieval.mining import (
    MARGINS,
    RETRIEVALS,
    Pairs,
    best_threshold,
    mine_pairs,
)
from labse_tf.retrieval.neighbours import Neighbours
from labse_tf.retrieval.search import INDEXES, search_both
from labse_tf.retrieval.sentences import (
    Sentences,
    embed_sides,
    open_sides,
    read_gold,
    read_sentences,
)
from labse_tf.retrieval.vectors import ArrayLike, is_binary, open_vectors

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


class Searched(NamedTuple):
    """The vectors of both sides' sentences, their neighbours, and facts for a report."""

    vectors: Sequence[ArrayLike]
    forward: Neighbours
    backward: Neighbours
    facts: dict[str, Any]
    seconds: dict[str, float]


@contextlib.contextmanager
def search_sides(
    sides: Sequence[Sentences],
    out: Path,
    inputs: dict[str, Any],
    *,
    model: str | None,
    open_encoder: Callable[..., Encoder] | None,
    options: Options,
    overwrite: bool,
    embeddings: Sequence[str] | None = None,
    rescore: Sequence[str] | None = None,
) -> Iterator[Searched]:
    """Yields the nearest neighbours of the sentences of both sides; the block writes `out`.

    Finished work is kept in `OUT.work` until the block succeeds, so that an interrupted job can
    resume. `inputs` describes the files of the sides; other arguments are as of `mine`.

    Raises:
      InputError: if an input is broken, `out` exists, the work there is of other settings, or the
        disk is full.
    """
    settings = inputs | {
        "vectors": [describe_files(Path(path)) for path in embeddings or ()],
        "rescore": [describe_files(Path(path)) for path in rescore or ()],
        "model": None if embeddings else describe_model(str(model)),
        "neighbours": options.neighbours,
        "index": options.index,
        "recall": options.recall,
        "dim": options.dim,
        "candidates": options.candidates,
    }
    start = time.monotonic()
    with (
        full_disk_said(out, remedy=GO_ON),
        work_folder(out, settings, overwrite=overwrite) as folder,
    ):
        if embeddings:
            vectors = open_sides(sides, embeddings)
        else:
            vectors = embed_sides(sides, folder, lambda: open_encoder(model, dim=options.dim))
        exact = _open_exact(sides, rescore, dim=vectors[0].shape[1]) if rescore else None
        embedded = time.monotonic()
        forward, backward, facts = search_both(
            *vectors,
            options.neighbours,
            folder,
            index=options.index,
            recall=options.recall,
            rescored_by=exact,
            candidates=options.candidates,
        )
        # This run, without interrupted ones.
        seconds = {"vectors": embedded - start, "search": time.monotonic() - embedded}
        yield Searched(vectors, forward, backward, facts, seconds)


def _open_exact(sides: Sequence[Sentences], paths: Sequence[str], *, dim: int) -> list[ArrayLike]:
    for path in paths:
        if is_binary(open_vectors(path, check=False)):
            problem = "holds binary vectors, which are not exact"
            remedy = "rescore by float32, float16 or int8 vectors"
            raise InputError(problem, path=path, remedy=remedy)
    return open_sides(sides, paths, dim=dim)


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
    files = {"source": source, "target": target}
    sides = [read_sentences(file) for file in files.values()]
    gold_pairs = read_gold(gold, sides) if gold else None
    with search_sides(
        sides,
        out,
        {name: describe_files(Path(file)) for name, file in files.items()},
        model=model,
        open_encoder=open_encoder,
        options=options,
        overwrite=overwrite,
        embeddings=embeddings,
        rescore=rescore,
    ) as found:
        start = time.monotonic()
        pairs = mine_pairs(
            found.forward,
            found.backward,
            margin=options.margin,
            retrieval=options.retrieval,
            one_to_one=options.is_one_to_one,
        )
        report = {"options": vars(options) | {"one_to_one": options.is_one_to_one}}
        for (name, file), side in zip(files.items(), sides, strict=True):
            report[name] = {"file": os.fspath(file)} | side.facts()
        report |= {
            "dimension": found.vectors[0].shape[1],
            "search": found.facts,
            "pairs_found": len(pairs),
        }
        threshold = options.threshold
        if gold_pairs:
            mined = zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
            is_gold = np.fromiter((pair in gold_pairs for pair in mined), bool, len(pairs))
            quality = best_threshold(pairs.scores, is_gold, len(gold_pairs), threshold)
            threshold = quality.threshold
            report["gold"] = {"file": os.fspath(gold), "pairs": len(gold_pairs)} | vars(quality)
        if threshold is not None:
            pairs = pairs[pairs.scores.astype(np.float64) >= threshold]
        _write(out, sides, pairs, overwrite=overwrite)
        seconds = found.seconds | {"pairs": time.monotonic() - start}
        report["pairs"] = len(pairs)
        report["seconds"] = {name: round(value, 1) for name, value in seconds.items()}
    return report


def _write(out: Path, sides: Sequence[Sentences], pairs: Pairs, *, overwrite: bool) -> None:
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
