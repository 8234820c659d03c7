"""The task `un`: P@1 of translation retrieval over a whole corpus, as in LaBSE's paper on the UN's.

The paper searches for each English sentence's translation among all distinct sentences of the UN's
parallel corpus (Ziemski, Junczys-Dowmunt and Pouliquen 2016), following Guo et al. 2018 (arXiv
1807.11906). That is `same_text` from English: as equal texts are equally near, the share of queries
that find the right text does not depend on how often the pool contains it. Both directions are
scored. Any aligned corpus can be used: Moses pairs `NAME.<a>-<b>.<a>` and `NAME.<a>-<b>.<b>`, or
TSV files `NAME.tsv`. Millions of sentences are possible: vectors are kept on disk, and the search
reads them in blocks, one corpus after the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.lines import embed_lines
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.aligned_corpora import AlignedFiles, find_corpora
from labse_tf.evaluation.record import encoder_facts, make_record
from labse_tf.evaluation.task import Option
from labse_tf.files.hashing import sha256_of_files
from labse_tf.files.local_paths import local_path
from labse_tf.files.outputs import locked, whole_file
from labse_tf.files.textio import ends_early
from labse_tf.languages import find_code
from labse_tf.retrieval.search import INDEXES, search_both
from labse_tf.retrieval.vectors import open_vectors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "p_at_1"
FOLDERS = ("un",)
KEEPS_VECTORS = True
DATA = """\
NAME.<a>-<b>.<a> and .<b>, or NAME.tsv: P@1 over the whole corpus, of any size,
en -> xx as LaBSE's paper, and both directions"""
OPTIONS = (
    Option(
        "work",
        "keep the vectors here: what was stopped goes on, and those of the same texts and "
        "model are used again (default: a temporary folder)",
        metavar="DIR",
    ),
    Option(
        "index",
        "how neighbours are searched (default exact; auto is exact for small pools)",
        choices=("exact", "approximate", "auto"),
    ),
    Option(
        "recall",
        "the share of true neighbours that an approximate search is to find (default 0.99)",
        type=float,
        metavar="X",
    ),
)

DIRECTIONS = ("forward", "backward")
SIDES = ("sources", "targets")
RECALL = 0.99

_HASH_BYTES = 8
_MADE_FROM = "made_from.json"
# The encoder facts that its vectors depend on; the last one only some have.
_IDENTITY = ("name", "kind", "sequence_length", "model_sha256", "vocabulary_sha256")
_LEADING = "leading_columns"


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    work: str | os.PathLike[str] | None = None,
    index: str = "exact",
    recall: float = RECALL,
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of aligned corpora, each with its own pool.
      work: a folder for vectors, 4 bytes x dim per sentence, and the search. They are kept: an
        interrupted evaluation resumes, and the same texts and model reuse them. By default a
        temporary folder, which has those of one corpus at a time.
      index: one of INDEXES; an approximate search may miss the nearest sentence.
      recall: the share of true neighbours that an approximate search should find.

    Returns:
      The record. `corpora`: for each its `pairs`, and for `forward` (source to target) and
      `backward` `p_at_1`, the share whose most similar sentence has the same index (ties go to the
      lowest index), and `same_text`, the share for which the text found equals the right one, so
      that duplicates do not count as errors; `from_english`, the direction in which English
      sentences are the queries, or None; `search`, the index and, if approximate, the measured
      recall. `p_at_1`: the mean over corpora and directions. `from_english`: the means over the
      corpora that have such a direction, in it, and their number; None if there is none.

    Raises:
      InputError: if the data are missing or broken, or another process works in `work`.

    Example: with an encoder that counts letters.

      >>> Path("un").mkdir()
      >>> _ = Path("un/UN.de-en.de").write_text("Hallo Welt.\\nDie Katze schläft.\\n")
      >>> _ = Path("un/UN.de-en.en").write_text("Hello world.\\nThe cat sleeps.\\n")
      >>> evaluate(encoder, "un")["from_english"]
      {'p_at_1': 1.0, 'same_text': 1.0, 'corpora': 1}
    """
    if index not in INDEXES:
        raise InputError(f"--index is {index}", remedy=f"choose from {', '.join(INDEXES)}")
    if not 0 < recall <= 1:
        raise InputError(f"--recall is {recall}", remedy="give more than 0, at most 1")
    corpora = find_corpora(data)
    hashes = {name: _read_hashes(files) for name, files in corpora.items()}
    results = {}
    with _work_folder(work) as folder:
        for name, files in corpora.items():
            found, search = _search(
                encoder, files, len(hashes[name][0]), folder / name, index=index, recall=recall
            )
            results[name] = _score(found, hashes[name]) | {
                "from_english": direction_from_english(name, files),
                "search": search,
            }
            if work is None:
                # Nobody resumes from it, and the disk may not hold the vectors of all corpora.
                shutil.rmtree(folder / name)
    rows = [result[direction] for result in results.values() for direction in DIRECTIONS]
    english = [one[one["from_english"]] for one in results.values() if one["from_english"]]
    return make_record(
        "un",
        encoder,
        data,
        {path for files in corpora.values() for path in files.paths},
        primary_metric=PRIMARY_METRIC,
        directions=("source -> target (forward)", "target -> source (backward)"),
        settings={"ties": "the lowest index", "index": index},
        scores={
            **_mean(rows),
            "from_english": _mean(english) | {"corpora": len(english)} if english else None,
            "corpora": results,
        },
    )


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {metric: float(np.mean([row[metric] for row in rows])) for metric in rows[0]}


def direction_from_english(name: str, files: AlignedFiles) -> str | None:
    """Returns the direction in which English sentences are the queries; None if not in the name.

    A name that ends in `<a>-<b>` says which side is English. A TSV file whose name ends in a single
    language has English first, as all TSV files of the project do.
    """
    codes = [find_code(code) for code in name.rsplit(".", 1)[-1].split("-")]
    if "en" in codes:
        return DIRECTIONS[codes.index("en")]
    is_tsv = files.source_path == files.target_path
    return DIRECTIONS[0] if is_tsv and len(set(codes) - {None}) == 1 else None


def _read_hashes(files: AlignedFiles) -> tuple[np.ndarray, np.ndarray]:
    """Returns 64-bit hashes of sources and targets, to recognise equal texts: `[n]` each.

    Reading all texts before any is embedded also finds errors in them early.
    """
    sides = []
    for side in (0, 1):
        digests = (
            hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
            for text in files.texts(side)
        )
        sides.append(np.frombuffer(b"".join(digests), np.uint64))
    counts = [len(side) for side in sides]
    if counts[0] != counts[1]:
        short = counts.index(min(counts))
        raise ends_early(files[short], files[1 - short], counts[short])
    return sides[0], sides[1]


@contextlib.contextmanager
def _work_folder(work: str | os.PathLike[str] | None) -> Iterator[Path]:
    if work is None:
        with tempfile.TemporaryDirectory(prefix="labse-eval-") as folder:
            yield Path(folder)
        return
    folder = Path(local_path(work))
    with locked(folder):
        yield folder


def _search(
    encoder: Encoder, files: AlignedFiles, count: int, folder: Path, *, index: str, recall: float
) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    """Returns the nearest target of each source, the nearest source of each target, and facts."""
    search_folder = folder / f"search-{index}-{recall}"
    _forget_others(folder, _origin(encoder, files))
    search_folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.npy" for name in SIDES]
    for side, path in enumerate(paths):
        description = f"embed {SIDES[side]}"
        embed_lines(files.texts(side), encoder, path, total=count, description=description)
    vectors = [open_vectors(path) for path in paths]
    forward, backward, facts = search_both(*vectors, 1, search_folder, index=index, recall=recall)
    return (forward.indices[:, 0], backward.indices[:, 0]), facts


def _origin(encoder: Encoder, files: AlignedFiles) -> dict[str, Any]:
    facts = encoder_facts(encoder)
    root = os.path.dirname(files.source_path) or "."
    leading = {_LEADING: facts[_LEADING]} if _LEADING in facts else {}
    return {
        "texts_sha256": sha256_of_files(files.paths, root=root),
        "encoder": {name: facts.get(name) for name in _IDENTITY} | leading,
    }


def _forget_others(folder: Path, origin: dict[str, Any]) -> None:
    """Removes results that were, or may have been, made from other texts or another encoder.

    An encoder without a hash of its model may have changed.
    """
    note = folder / _MADE_FROM
    with contextlib.suppress(OSError, ValueError):
        if origin["encoder"]["model_sha256"] and json.loads(note.read_text("utf-8")) == origin:
            return
    shutil.rmtree(folder, ignore_errors=True)
    with whole_file(note) as partial:
        partial.write_text(json.dumps(origin, indent=1) + "\n", "utf-8")


def _score(
    found: tuple[np.ndarray, np.ndarray], hashes: tuple[np.ndarray, np.ndarray]
) -> dict[str, Any]:
    return {
        "pairs": len(hashes[0]),
        "distinct_sources": len(np.unique(hashes[0])),
        "distinct_targets": len(np.unique(hashes[1])),
        "forward": score_direction(found[0], hashes[1]),
        "backward": score_direction(found[1], hashes[0]),
    }


def score_direction(found: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    """Returns `p_at_1` and `same_text`.

    Args:
      found: `[n]` ints, the nearest candidate of each query; the right one has the query's index.
      candidates: `[n]`, equal where texts are equal.
    """
    return {
        "p_at_1": float(np.mean(found == np.arange(len(found)))),
        "same_text": float(np.mean(candidates[found] == candidates)),
    }


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns P@1 of each corpus."""
    return {
        name: float(np.mean([row[way]["p_at_1"] for way in ("forward", "backward")]))
        for name, row in result["corpora"].items()
    }


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per corpus, then the means: the paper's, and of both directions."""
    lines = [
        f"{'':24}{'':>12}{'P@1, %':^16}{'same text, %':^18}",
        f"{'':24}{'pairs':>12}{'a -> b':>8}{'b -> a':>8}{'a -> b':>10}{'b -> a':>8}",
    ]
    for name, one in result["corpora"].items():
        there, back = (one[direction] for direction in DIRECTIONS)
        lines.append(
            f"{name:24}{one['pairs']:>12,}{100 * there['p_at_1']:8.2f}{100 * back['p_at_1']:8.2f}"
            f"{100 * there['same_text']:10.2f}{100 * back['same_text']:8.2f}"
        )
        if "recall" in one["search"]:
            recall = one["search"]["recall"]
            numbers = " and ".join(f"{100 * recall[direction]:.1f} %" for direction in DIRECTIONS)
            lines.append(f"  approximate search, recall {numbers}")
    found = "no corpus has English in its name"
    if english := result["from_english"]:
        number = f"{english['corpora']} of {len(result['corpora'])} corpora"
        found = f"{100 * english['same_text']:.2f} ({number})"
    lines += [
        f"mean P@1, en -> xx, equal texts as one, as LaBSE's paper: {found}",
        f"mean P@1, both directions: {100 * result['p_at_1']:.2f}, "
        f"same text: {100 * result['same_text']:.2f}",
    ]
    return "\n".join(lines)


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots P@1 of each corpus in both directions."""
    corpora = result["corpora"]
    figure.set_size_inches(0.8 * len(corpora) + 2.5, 3.2)
    axes = figure.subplots()
    for place, direction in enumerate(DIRECTIONS):
        heights = [100 * one[direction]["p_at_1"] for one in corpora.values()]
        axes.bar(np.arange(len(corpora)) + 0.4 * place, heights, 0.4, label=direction)
    axes.set_xticks(np.arange(len(corpora)) + 0.2, list(corpora), rotation=30, fontsize=8)
    axes.set_ylabel("P@1, %")
    axes.set_ylim(0, 100)
    axes.legend(fontsize=7)
