"""`labse mine-negatives`: writes a file of pairs and their hard negatives for each language.

A language that is in the report is done; a stopped job resumes with the next one.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from labse_tf.data import texts
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, CorpusFile, find_plain_files
from labse_tf.files.local_paths import local_path
from labse_tf.files.outputs import (
    check_free,
    emptied,
    empty,
    locked,
    stamps_of_files,
    whole_file,
    write_json,
)
from labse_tf.progress import Progress
from labse_tf.systems.hard_negatives.pool import Pool, make_pool, text_key
from labse_tf.systems.hard_negatives.selection import Negatives, choose

REPORT = "report.json"
_RECORDS_AT_ONCE = 4096
_BATCHES_HELD = 128
_SEPARATORS = re.compile(r"[\t\r\n]+")

_Sides = tuple[list[str], list[str]]

_log = logging.getLogger("labse")


def mine(
    inputs: Sequence[str],
    out: str | os.PathLike[str],
    encoder: Encoder,
    *,
    model_files: Sequence[Path],
    languages: Sequence[str] = (),
    count: int = 3,
    pool_size: int = 200_000,
    max_similarity: float = 0.9,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes `out/<lang>.tsv.gz` (source, target, negative 1 to `count`) and `out/report.json`.

    Args:
      inputs: bitext, TSV or clean shards.
      out: a folder, either new or from an earlier run of the same job.
      encoder: embeds the sentences.
      model_files: the files of its weights, which identify it.
      languages: codes; empty means all.
      count: negatives per pair.
      pool_size: approximate maximum number of pairs searched together. A larger language is
        searched in parts that keep the pairs of a source together.
      max_similarity: see `choose`.
      overwrite: start over.

    Returns:
      The report.

    Raises:
      InputError: if the input is missing or broken, or `out` holds something else.
    """
    check_options(
        out, count=count, pool_size=pool_size, max_similarity=max_similarity, overwrite=overwrite
    )
    files = find_plain_files(inputs, kind=BITEXT)
    files = [file for file in files if not languages or file.language in languages]
    settings = {
        "count": count,
        "pool_size": pool_size,
        "max_similarity": max_similarity,
        "inputs": stamps_of_files(file.path for file in files),
        "model": stamps_of_files(model_files),
    }
    out = Path(local_path(out))
    with locked(out):
        report = _start(out, settings, overwrite=overwrite)
        for language, group in groupby(sorted(files, key=_language), key=_language):
            if language in report["languages"] and (out / f"{language}.tsv.gz").is_file():
                _log.info("%s: already done", language)
                continue
            facts = _mine_language(
                sorted(group), out / f"{language}.tsv.gz", encoder, count, pool_size, max_similarity
            )
            report["languages"][language] = facts
            report["languages"] = dict(sorted(report["languages"].items()))
            write_json(out / REPORT, report, overwrite=True)
    return report


def check_options(
    out: str | os.PathLike[str],
    *,
    count: int,
    pool_size: int,
    max_similarity: float,
    overwrite: bool,
) -> None:
    """Rejects options that `mine` would reject, before a model is trained for it.

    Raises:
      InputError: if a number is out of range, or `out` holds anything but such a job.
    """
    for name, value, least in (("count", count, 1), ("pool-size", pool_size, 2)):
        if value < least:
            raise InputError(f"--{name} is {value}", remedy=f"give {least} or more")
    if not -1 <= max_similarity <= 1:
        raise InputError(f"--max-similarity is {max_similarity}", remedy="give -1 to 1")
    if not Path(local_path(out), REPORT).is_file():
        check_free(out, overwrite=overwrite)


def _language(file: CorpusFile) -> str:
    return file.language


def _start(out: Path, settings: dict[str, Any], *, overwrite: bool) -> dict[str, Any]:
    """Returns the report so far; without one, or with `overwrite`, empties the folder."""
    if (out / REPORT).is_file() and not overwrite:
        report = json.loads((out / REPORT).read_text("utf-8"))
        if report.get("settings") != settings:
            changed = [
                key for key in settings if report.get("settings", {}).get(key) != settings[key]
            ]
            raise InputError(
                f"holds negatives mined with other settings ({', '.join(changed)})",
                path=out,
                remedy="choose another --out, or add --overwrite (and --model RUN_DIR, to avoid "
                "training another model)",
            )
        return report
    check_free(out, overwrite=overwrite)
    empty(out)
    report = {"settings": settings, "languages": {}}
    write_json(out / REPORT, report, overwrite=True)
    return report


def _mine_language(
    files: Sequence[CorpusFile],
    path: Path,
    encoder: Encoder,
    count: int,
    pool_size: int,
    max_similarity: float,
) -> dict[str, Any]:
    pairs = sum(len(some) for some, _ in _read(files))
    facts = _Facts(count)
    with (
        Progress(f"mine {files[0].language}", total=pairs, unit="pair") as progress,
        whole_file(path, overwrite=True) as partial,
        # No name and no time, so that the same input gives the same bytes.
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file,
    ):
        for sources, targets in _pools(files, -(-pairs // pool_size), path.parent):
            pool = make_pool(sources, targets)
            found = choose(
                pool,
                encoder.encode(pool.sources),
                encoder.encode(pool.targets),
                count=count,
                max_similarity=max_similarity,
            )
            _write(file, sources, targets, pool, found)
            facts.add(pool, found)
            progress.update(len(sources))
    return facts.summary()


def _write(
    file: BinaryIO, sources: list[str], targets: list[str], pool: Pool, found: Negatives
) -> None:
    count = found.targets.shape[1]
    for source, target, place in zip(sources, targets, pool.pair_sources, strict=True):
        wrong = [pool.targets[i] for i in found.targets[place] if i >= 0]
        columns = [source, target, *wrong, *[""] * (count - len(wrong))]
        file.write(("\t".join(columns) + "\n").encode())


def _pools(files: Sequence[CorpusFile], number: int, folder: Path) -> Iterator[_Sides]:
    """Yields the pairs in `number` pools; pairs with equal sources share a pool, in input order.

    Args:
      files: the files of one language.
      number: number of pools.
      folder: holds temporary files if there are several pools.
    """
    if number == 1:
        pairs = list(_read(files))
        yield [text for side, _ in pairs for text in side], [t for _, side in pairs for t in side]
        return
    with emptied(folder / ".pools") as parts:
        held: dict[Path, list[str]] = {}
        for index, (sources, targets) in enumerate(_read(files)):
            for source, target in zip(sources, targets, strict=True):
                part = zlib.crc32(text_key(source).encode()) % number
                held.setdefault(parts / str(part), []).append(f"{source}\t{target}\n")
            # Append rarely, and do not keep files open: there may be more than can be open at once.
            if index % _BATCHES_HELD == _BATCHES_HELD - 1:
                _append(held)
        _append(held)
        for path in sorted(parts.iterdir()):
            pairs = [line.split("\t") for line in path.read_text("utf-8").split("\n")[:-1]]
            yield [source for source, _ in pairs], [target for _, target in pairs]


def _append(held: dict[Path, list[str]]) -> None:
    for path, lines in held.items():
        with open(path, "a", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
    held.clear()


def _read(files: Sequence[CorpusFile]) -> Iterator[_Sides]:
    """Yields thousands of sources and targets at a time; tabs and line ends become spaces."""
    records = texts.concatenate([texts.records(file) for file in files])
    with texts.input_errors():
        for serialized in records.batch(_RECORDS_AT_ONCE):
            sides = texts.parse(BITEXT, serialized)
            sources, targets = (
                [_SEPARATORS.sub(" ", text.decode()) for text in side.numpy()] for side in sides
            )
            yield sources, targets


class _Facts:
    """The report's figures for a language, accumulated over its pools."""

    def __init__(self, count: int) -> None:
        self._counts = np.zeros(count + 1, np.int64)
        self._sizes = np.zeros(3, np.int64)
        self._left_out: dict[str, int] = {}
        self._translations: list[np.ndarray] = []
        self._negatives: list[np.ndarray] = []

    def add(self, pool: Pool, found: Negatives) -> None:
        self._sizes += (len(pool.pair_sources), len(pool.sources), len(pool.targets))
        numbers = (found.targets[pool.pair_sources] >= 0).sum(axis=1)
        self._counts += np.bincount(numbers, minlength=len(self._counts))
        for reason, left_out in found.left_out.items():
            self._left_out[reason] = self._left_out.get(reason, 0) + left_out
        self._translations.append(found.translation)
        self._negatives.append(found.similarities)

    def summary(self) -> dict[str, Any]:
        negatives = np.concatenate(self._negatives)
        means = [
            round(float(np.nanmean(column)), 4) if np.isfinite(column).any() else None
            for column in negatives.T
        ]
        return {
            **dict(zip(("pairs", "sources", "targets"), self._sizes.tolist(), strict=True)),
            "pairs_by_negatives": self._counts.tolist(),
            "left_out": self._left_out,
            "similarity": {
                "translation": round(float(np.mean(np.concatenate(self._translations))), 4),
                "negatives": means,
            },
        }
