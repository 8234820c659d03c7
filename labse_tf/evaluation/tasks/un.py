"""The task `un`: P@1 of translation retrieval over a whole corpus, as in LaBSE's paper on the UN's.

The paper searches for each English sentence's translation among all distinct sentences of the UN's
parallel corpus, following Guo et al. 2018 (arXiv 1807.11906). That is `same_text` from English: as
equal texts are equally near, the share of queries that find the right text does not depend on how
often the pool contains it. Vectors are kept on disk, and the search reads them in blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.embedding.file import embed_lines
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.result import Column, Part, Result, mean_of
from labse_tf.evaluation.task import Option, encoder_facts, make_record
from labse_tf.evaluation.texts import AlignedFiles, check_lengths, find_corpora
from labse_tf.files.local_paths import local_path
from labse_tf.files.outputs import locked, sha256_of_files, write_json
from labse_tf.languages import find_code
from labse_tf.retrieval.neighbours import Neighbours
from labse_tf.retrieval.search import INDEXES, search_both
from labse_tf.retrieval.vectors import open_vectors

TYPE = "BitextMining"
PRIMARY_METRIC = "p_at_1"
FOLDERS = ("un",)
KEEPS_VECTORS = True
DATA = """\
NAME.<a>-<b>.<a> and .<b>, or NAME.tsv: P@1 over the whole corpus, of any size,
en -> xx as LaBSE's paper, and both directions"""
_WORK = """keep the vectors here: what was stopped goes on, and those of the same texts and \
model are used again (default: a temporary folder)"""
_INDEX = "how neighbours are searched (default exact; auto is exact for small pools)"
_RECALL = "the share of true neighbours that an approximate search is to find (default 0.99)"
OPTIONS = (
    Option("work", _WORK, metavar="DIR"),
    Option("index", _INDEX, choices=INDEXES),
    Option("recall", _RECALL, type=float, metavar="X"),
)

DIRECTIONS = ("forward", "backward")
SIDES = ("sources", "targets")
RECALL = 0.99
# Two neighbours tell whether there is a tie.
NEAREST = 2

# The encoder facts that its vectors depend on.
_IDENTITY = ("name", "kind", "sequence_length", "model_sha256", "leading_columns")


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    work: str | os.PathLike[str] | None = None,
    index: str = "exact",
    recall: float = RECALL,
) -> dict[str, Any]:
    """Returns the record of an encoder.

    `corpora`: for each its `pairs`; for `forward` (source to target) and `backward` what
    `score_direction` returns; `from_english`, the direction in which English sentences are the
    queries, or None; `search`, the index and, if approximate, the measured recall. `p_at_1` and
    `same_text`: the means over corpora and directions. `from_english`: their means and the number
    of corpora in that direction; None if there is none.
    """
    if not 0 < recall <= 1:
        raise InputError(f"--recall is {recall}", remedy="give more than 0, at most 1")
    corpora = find_corpora(data)
    hashes = {name: _read_hashes(files) for name, files in corpora.items()}
    results = {}
    with contextlib.ExitStack() as stack:
        if work is None:
            temporary = tempfile.TemporaryDirectory(prefix="labse-eval-")
            folder = Path(stack.enter_context(temporary))
        else:
            folder = Path(local_path(work))
            stack.enter_context(locked(folder))
        for name, files in corpora.items():
            sources, targets = hashes[name]
            how = {"index": index, "recall": recall}
            forward, backward, search = _search(encoder, files, len(sources), folder / name, **how)
            results[name] = {
                "pairs": len(sources),
                "distinct_sources": len(np.unique(sources)),
                "distinct_targets": len(np.unique(targets)),
                "forward": score_direction(forward, targets),
                "backward": score_direction(backward, sources),
                "from_english": direction_from_english(name, files),
                "search": search,
            }
            if work is None:
                # Nobody resumes from it, and the disk may not hold the vectors of all corpora.
                shutil.rmtree(folder / name)
    rows = [result[direction] for result in results.values() for direction in DIRECTIONS]
    english = [one[one["from_english"]] for one in results.values() if one["from_english"]]
    scores = {
        **mean_of(rows),
        "from_english": mean_of(english) | {"corpora": len(english)} if english else None,
        "corpora": results,
    }
    paths = {path for files in corpora.values() for path in files}
    settings = {"ties": "not found", "index": index}
    return make_record("un", encoder, data, paths, settings, scores)


def direction_from_english(name: str, files: AlignedFiles) -> str | None:
    """Returns the direction in which English sentences are the queries; None if not in the name.

    The name ends in `<a>-<b>`, or in a single language: then a TSV file has English first.
    """
    codes = [find_code(code) for code in name.rsplit(".", 1)[-1].split("-")]
    if "en" in codes:
        return DIRECTIONS[codes.index("en")]
    return DIRECTIONS[0] if files.is_table and len(set(codes) - {None}) == 1 else None


def _read_hashes(files: AlignedFiles) -> list[np.ndarray]:
    """Returns 64-bit hashes of sources and targets, to recognise equal texts: `[n]` each.

    Reading all texts before any is embedded also finds errors in them early.
    """

    def digest(text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    digests = (b"".join(map(digest, files.texts(side))) for side in range(len(SIDES)))
    sides = [np.frombuffer(one, np.uint64) for one in digests]
    check_lengths(files, sides)
    return sides


def _search(
    encoder: Encoder, files: AlignedFiles, count: int, folder: Path, *, index: str, recall: float
) -> tuple[Neighbours, Neighbours, dict[str, Any]]:
    """Returns the nearest targets of each source, the nearest sources of each target, and facts."""
    _forget_others(folder, encoder, files)
    search_folder = folder / f"search-{NEAREST}-{index}-{recall}"
    search_folder.mkdir(parents=True, exist_ok=True)
    vectors = []
    for side, name in enumerate(SIDES):
        path, lines = folder / f"{name}.npy", files.texts(side)
        embed_lines(lines, encoder, path, total=count, description=f"embed {name}")
        vectors.append(open_vectors(path))
    return search_both(*vectors, NEAREST, search_folder, index=index, recall=recall)


def _forget_others(folder: Path, encoder: Encoder, files: AlignedFiles) -> None:
    """Removes results that were, or may have been, made from other texts or another encoder.

    An encoder without a hash of its model may have changed.
    """
    facts, note = encoder_facts(encoder), folder / "made_from.json"
    origin = {
        "texts_sha256": sha256_of_files(set(files), root=os.path.dirname(files.source_path) or "."),
        "encoder": {name: facts.get(name) for name in _IDENTITY},
    }
    with contextlib.suppress(OSError, ValueError):
        if facts.get("model_sha256") and json.loads(note.read_text("utf-8")) == origin:
            return
    shutil.rmtree(folder, ignore_errors=True)
    write_json(note, origin)


def score_direction(found: Neighbours, candidates: np.ndarray) -> dict[str, float]:
    """Returns `p_at_1` and `same_text`.

    `p_at_1`: the share of queries whose right candidate, which has the query's index, is nearer
    than all others. `same_text`: the share whose nearest text equals the right one. A tie of the
    two nearest is a miss; in `same_text`, if their texts differ: `candidates` `[n]` equal as texts.
    """
    first, last = found.indices[:, 0], found.indices[:, -1]
    ties = (first != last) & (found.similarities[:, 0] == found.similarities[:, -1])
    right = candidates[first] == candidates
    return {
        "p_at_1": float(np.mean((first == np.arange(len(first))) & ~ties)),
        "same_text": float(np.mean(right & ~(ties & (candidates[first] != candidates[last])))),
    }


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the figures of each corpus, then the means: the paper's, and of both directions."""
    corpora = record["corpora"]
    columns = (
        Column("pairs", "pairs", None),
        Column("P@1, %: a -> b", "forward.p_at_1", 2, style="bar"),
        Column("b -> a", "backward.p_at_1", 2, style="bar"),
        Column("same text, %: a -> b", "forward.same_text", 2),
        Column("b -> a", "backward.same_text", 2),
    )
    notes = []
    for name, row in corpora.items():
        if recall := row["search"].get("recall"):
            shares = " and ".join(f"{100 * recall[way]:.1f} %" for way in DIRECTIONS)
            notes.append(f"{name}: approximate search, recall {shares}")
    papers = "no corpus has English in its name"
    if english := record["from_english"]:
        number = f"{english['corpora']} of {len(corpora)} corpora"
        papers = f"{100 * english['same_text']:.2f} ({number})"
    notes += [
        f"mean P@1, en -> xx, equal texts as one, as LaBSE's paper: {papers}",
        f"mean P@1, both directions: {100 * record['p_at_1']:.2f}, "
        f"same text: {100 * record['same_text']:.2f}",
    ]
    units = {
        name: float(np.mean([row[way]["p_at_1"] for way in DIRECTIONS]))
        for name, row in corpora.items()
    }
    return Result([Part("", corpora, columns)], units, notes)
