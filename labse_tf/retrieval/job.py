"""`labse mine`: finds translations in two files of sentences."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files import outputs
from labse_tf.files.textio import open_to_write, read_lines
from labse_tf.retrieval.mining import Pairs, best_threshold, mine_pairs
from labse_tf.retrieval.neighbours import Neighbours
from labse_tf.retrieval.search import search_both
from labse_tf.retrieval.sentences import Sentences, distinct, embed_sides, open_sides, read_gold
from labse_tf.retrieval.vectors import ArrayLike

GO_ON = "run the same command again to resume"
_SEPARATORS = re.compile(r"[\t\r\n]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Options of mining.

    Attributes:
      neighbours: k of the margin, and the number of candidates per sentence.
      margin: one of `mining.MARGINS`.
      retrieval: one of `mining.RETRIEVALS`.
      threshold: the lowest score to keep; None for all, or the best threshold on the gold pairs.
      index: one of `search.INDEXES`.
      recall: the share of true neighbours that an approximate search should find.
      dim: the number of leading columns of the model's vectors that are used; None: all.
    """

    neighbours: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    threshold: float | None = None
    index: str = "auto"
    recall: float = 0.95
    dim: int | None = None

    def __post_init__(self) -> None:
        """Raises InputError if a value is out of range."""
        if self.neighbours < 1:
            raise InputError(f"--neighbours is {self.neighbours}", remedy="give 1 or more")
        if not 0 < self.recall <= 1:
            raise InputError(f"--recall is {self.recall}", remedy="give more than 0, at most 1")


class Searched(NamedTuple):
    """The vectors of both sides' sentences, their neighbours, and facts for a report."""

    vectors: Sequence[ArrayLike]
    forward: Neighbours
    backward: Neighbours
    facts: dict[str, Any]


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
    how = {"index": options.index, "recall": options.recall}
    settings = (
        inputs
        | how
        | {
            "neighbours": options.neighbours,
            "dim": options.dim,
            "vectors": [outputs.describe_files(Path(path)) for path in embeddings or ()],
            "rescore": [outputs.describe_files(Path(path)) for path in rescore or ()],
            "model": None if embeddings else outputs.describe_model(str(model)),
        }
    )
    with (
        outputs.report_full_disk(out, remedy=GO_ON),
        outputs.work_folder(out, settings, overwrite=overwrite) as folder,
    ):
        if embeddings:
            vectors = open_sides(sides, embeddings)
        else:
            vectors = embed_sides(sides, folder, lambda: open_encoder(model, dim=options.dim))
        if rescore:
            exact = open_sides(sides, rescore, dim=vectors[0].shape[1], binary=False)
            how["rescored_by"] = exact
        yield Searched(vectors, *search_both(*vectors, options.neighbours, folder, **how))


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
    """Writes the pairs found to `out`, a TSV of score, source and target; returns the report.

    Args:
      source: a file with one sentence per line.
      target: likewise.
      out: the output file, compressed according to its extension.
      model: the name of the encoder.
      open_encoder: opens it, with `dim`; called only if there is something to embed.
      embeddings: used instead of a model: vectors of the lines of both files, see `open_vectors`.
      rescore: the same vectors, less or not quantised, that candidates are compared by.
      gold: a TSV of line numbers, see `read_gold`.
      options: how to mine.
      overwrite: replace `out`, and discard the work of a job with other settings.

    Raises:
      InputError: if an input is missing or broken, the output exists or the disk is full.
    """
    options = options or Options()
    if rescore and not embeddings:
        raise InputError("--rescore without --embeddings", remedy="add the vectors to search with")
    out = outputs.check_free_file(out, overwrite=overwrite)
    files = {"source": source, "target": target}
    sides = [distinct((line for _, line in read_lines(file)), file) for file in files.values()]
    gold_pairs = read_gold(gold, sides) if gold else None
    with search_sides(
        sides,
        out,
        {name: outputs.describe_files(Path(file)) for name, file in files.items()},
        model=model,
        open_encoder=open_encoder,
        options=options,
        overwrite=overwrite,
        embeddings=embeddings,
        rescore=rescore,
    ) as found:
        how = {"margin": options.margin, "retrieval": options.retrieval}
        pairs = mine_pairs(found.forward, found.backward, **how)
        report: dict[str, Any] = {"options": vars(options)}
        for (name, file), side in zip(files.items(), sides, strict=True):
            report[name] = {"file": os.fspath(file)} | side.facts()
        report |= {"dimension": found.vectors[0].shape[1], "search": found.facts}
        report["pairs_found"] = len(pairs)
        threshold = options.threshold
        if gold_pairs:
            mined = zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
            is_gold = np.fromiter((pair in gold_pairs for pair in mined), bool, len(pairs))
            quality = best_threshold(pairs.scores, is_gold, len(gold_pairs), threshold)
            threshold = quality.threshold
            report["gold"] = {"file": os.fspath(gold), "pairs": len(gold_pairs)} | vars(quality)
        if threshold is not None:
            pairs = pairs[pairs.scores.astype(np.float64) >= threshold]
        with outputs.whole_file(out, overwrite=overwrite) as partial:
            _write(partial, out, sides, pairs)
        report["pairs"] = len(pairs)
    return report


def _write(partial: Path, out: Path, sides: Sequence[Sentences], pairs: Pairs) -> None:
    columns = (column.tolist() for column in vars(pairs).values())
    with open_to_write(partial, name=out) as file:
        for source, target, score in zip(*columns, strict=True):
            texts = (sides[0].texts[source], sides[1].texts[target])
            row = [f"{score:.6f}", *(_SEPARATORS.sub(" ", text) for text in texts)]
            file.write("\t".join(row) + "\n")
