"""Writes a file of pairs and their hard negatives for each language.

A language that is in the report is done; a stopped job resumes with the next one.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from labse_tf.config import TrainRun
from labse_tf.data import texts
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.embedding.open import load_model_dir
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, CorpusFile, find_plain_files
from labse_tf.files.local_paths import local_path
from labse_tf.files.outputs import (
    changed_settings,
    check_free,
    emptied,
    empty,
    locked,
    stamps_of_files,
    whole_file,
    write_json,
)
from labse_tf.progress import Progress
from labse_tf.systems.hard_negatives.selection import Negatives, choose, make_pool, text_key
from labse_tf.training.runs.checkpoints import choose_checkpoint, load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import RunDir
from labse_tf.training.validation import RunEmbedder

REPORT = "report.json"
_CHUNKS_HELD = 512
_SEPARATORS = re.compile(r"[\t\r\n]+")

_log = logging.getLogger("labse")


def open_model(path: str | os.PathLike[str]) -> tuple[Encoder, Path]:
    """Opens a model dir, or a run; returns an encoder and the file that identifies its weights.

    Raises InputError if the folder is neither, or the run has no checkpoint.
    """
    run_dir = RunDir(Path(path))
    if not run_dir.config_file.is_file():
        model_dir = ModelDir.open(path)
        graph = model_dir.encoder / "saved_model.pb"
        return load_model_dir(model_dir), graph if graph.is_file() else model_dir.encoder
    checkpoint = choose_checkpoint(run_dir).path
    encoder, tokenizer = load_encoder(run_dir, checkpoint=checkpoint), load_tokenizer(run_dir)
    length = run_dir.read_config(TrainRun).train.bucket_lengths[-1]
    embedder = RunEmbedder(encoder, tokenizer, sequence_length=length)
    return embedder, Path(f"{checkpoint}.index")


def mine(
    inputs: Sequence[str],
    out: str | os.PathLike[str],
    encoder: Encoder,
    *,
    model_file: Path,
    count: int = 3,
    pool_size: int = 200_000,
    max_similarity: float = 0.9,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes `out/<lang>.tsv.gz` (source, target, negative 1 to `count`) and returns the report.

    `out` is new, or of the same job before, of which `model_file` identifies the encoder; or
    `overwrite` starts over. About `pool_size` pairs at most are searched together: a larger
    language in parts that keep the pairs of a source together. `max_similarity` is as in `choose`.

    Raises InputError if a number is out of range, the input is missing or broken, or `out` holds
    something else.
    """
    for name, value, least in (("count", count, 1), ("pool-size", pool_size, 2)):
        if value < least:
            raise InputError(f"--{name} is {value}", remedy=f"give {least} or more")
    if not -1 <= max_similarity <= 1:
        raise InputError(f"--max-similarity is {max_similarity}", remedy="give -1 to 1")
    search = {"count": count, "pool_size": pool_size, "max_similarity": max_similarity}
    files = find_plain_files(inputs, kind=BITEXT)
    settings = {
        **search,
        "inputs": stamps_of_files(file.path for file in files),
        "model": stamps_of_files([model_file]),
    }
    out = Path(local_path(out))
    if not (out / REPORT).is_file():
        check_free(out, overwrite=overwrite)
    with locked(out):
        report = _start(out, settings, overwrite=overwrite)
        language_of = attrgetter("language")
        for language, group in groupby(sorted(files, key=language_of), key=language_of):
            path = out / f"{language}.tsv.gz"
            if language in report["languages"] and path.is_file():
                _log.info("%s: already done", language)
                continue
            facts = _mine_language(sorted(group), path, encoder, **search)
            report["languages"] = dict(sorted((report["languages"] | {language: facts}).items()))
            write_json(out / REPORT, report, overwrite=True)
    return report


def _start(out: Path, settings: dict[str, Any], *, overwrite: bool) -> dict[str, Any]:
    """Returns the report so far; without one, or with `overwrite`, empties the folder."""
    if (out / REPORT).is_file() and not overwrite:
        report = json.loads((out / REPORT).read_text("utf-8"))
        if changed := changed_settings(report.get("settings", {}), settings):
            problem = f"holds negatives mined with other settings ({', '.join(changed)})"
            raise InputError(problem, path=out, remedy="choose another --out, or add --overwrite")
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
    *,
    count: int,
    pool_size: int,
    max_similarity: float,
) -> dict[str, Any]:
    """Writes the file of a language; returns its figures for the report."""
    pairs = sum(len(chunk) for chunk in _read(files))
    sizes, counts = np.zeros(3, np.int64), np.zeros(count + 1, np.int64)
    chosen: list[Negatives] = []
    with (
        Progress(f"mine {files[0].language}", total=pairs, unit="pair") as progress,
        whole_file(path, overwrite=True) as partial,
        # No name and no time, so that the same input gives the same bytes.
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file,
    ):
        for some in _pools(files, -(-pairs // pool_size), path.parent):
            pool = make_pool(*zip(*some, strict=True))
            vectors = [encoder.encode(side) for side in (pool.sources, pool.targets)]
            found = choose(pool, *vectors, count=count, max_similarity=max_similarity)
            for pair, place in zip(some, pool.pair_sources, strict=True):
                wrong = [pool.targets[i] if i >= 0 else "" for i in found.targets[place]]
                file.write(("\t".join([*pair, *wrong]) + "\n").encode())
            sizes += (len(some), len(pool.sources), len(pool.targets))
            numbers = (found.targets[pool.pair_sources] >= 0).sum(axis=1)
            counts += np.bincount(numbers, minlength=len(counts))
            chosen.append(found)
            progress.update(len(some))
    similarities = np.concatenate([one.similarities for one in chosen])
    translation = np.mean(np.concatenate([one.translation for one in chosen]))
    return {
        **dict(zip(("pairs", "sources", "targets"), sizes.tolist(), strict=True)),
        "pairs_by_negatives": counts.tolist(),
        "left_out": {key: sum(one.left_out[key] for one in chosen) for key in chosen[0].left_out},
        "similarity": {
            "translation": round(float(translation), 4),
            "negatives": [
                round(float(np.nanmean(column)), 4) if np.isfinite(column).any() else None
                for column in similarities.T
            ],
        },
    }


def _pools(files: Sequence[CorpusFile], number: int, folder: Path) -> Iterator[list[list[str]]]:
    """Yields the pairs of a language in `number` pools, in input order.

    Pairs with equal sources share a pool. Several pools are temporary files in `folder`.
    """
    chunks = _read(files)
    if number == 1:
        yield list(chain.from_iterable(chunks))
        return
    with emptied(folder / ".pools") as parts:
        while some := list(islice(chunks, _CHUNKS_HELD)):
            held: dict[int, list[str]] = defaultdict(list)
            for source, target in chain.from_iterable(some):
                part = zlib.crc32(text_key(source).encode()) % number
                held[part].append(f"{source}\t{target}\n")
            # Files do not stay open: there may be more than can be open at once.
            for part, lines in held.items():
                with open(parts / str(part), "a", encoding="utf-8", newline="\n") as file:
                    file.writelines(lines)
        for path in sorted(parts.iterdir()):
            yield [line.split("\t") for line in path.read_text("utf-8").split("\n")[:-1]]


def _read(files: Sequence[CorpusFile]) -> Iterator[list[list[str]]]:
    """Yields about a thousand pairs at a time; tabs and line ends become spaces."""
    for file in files:
        for rows in texts.columns(file):
            yield [[_SEPARATORS.sub(" ", tf.compat.as_text(text)) for text in row] for row in rows]
