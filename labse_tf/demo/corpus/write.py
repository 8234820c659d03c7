"""Writes the demo corpus to a folder.

    OUT/bitext/<lang>.tsv.gz       English<TAB>foreign, for training
    OUT/dev/<lang>.tsv.gz          the same, held out
    OUT/monolingual/<lang>.txt.gz  the sentences of the training pairs, English in en.txt.gz
    OUT/SOURCES.json               the packages, with their licences and numbers of pairs

The same package versions give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from labse_tf.demo.corpus.catalogues import RawPair, list_catalogues, read_catalogue
from labse_tf.demo.corpus.cleaning import clean_pair
from labse_tf.demo.corpus.names import list_locales, read_names
from labse_tf.demo.corpus.packages import (
    MESSAGES,
    SOURCES,
    Source,
    find_folder,
    find_licence,
    find_version,
)
from labse_tf.demo.corpus.split import SourcedPair, split_pairs
from labse_tf.files.outputs import whole_dir
from labse_tf.progress import Progress

SOURCES_FILE = "SOURCES.json"
_FILES_PER_CALL = 16  # To another process.


def write_demo_corpus(
    out: str | os.PathLike[str], *, sources: Sequence[Source] = SOURCES, overwrite: bool = False
) -> dict:
    """Writes the demo corpus to the folder `out` and returns the content of SOURCES.json.

    Args:
      out: a new or empty folder.
      sources: the packages to read; a pair that occurs in several is attributed to the first.
      overwrite: replace `out` if it exists.

    Raises:
      InputError: if a package is not installed, or `out` is taken.
    """
    with whole_dir(out, overwrite=overwrite) as folder:
        for source in sources:
            find_folder(source)
        pairs, unknown = collect_pairs(sources)
        messages = {source.distribution for source in sources if source.kind == MESSAGES}
        train, dev = split_pairs(pairs, messages)
        facts = _describe(sources, train, dev, unknown)
        _write_bitext(folder / "bitext", train)
        _write_bitext(folder / "dev", dev)
        _write_monolingual(folder / "monolingual", train)
        text = json.dumps(facts, indent=2, ensure_ascii=False)
        (folder / SOURCES_FILE).write_text(text + "\n", encoding="utf-8")
    return facts


def collect_pairs(sources: Sequence[Source]) -> tuple[list[SourcedPair], int]:
    """Returns the distinct clean pairs of `sources`, and the number of files in unknown languages.

    Raises:
      InputError: if a package is not installed.
    """
    files = [(source, *file) for source in sources for file in _list_files(source)]
    known = [file for file in files if file[2] is not None]
    source_of: dict[tuple[str, str, str], str] = {}
    processes = max(1, min(os.cpu_count() or 1, len(known) // _FILES_PER_CALL))
    with (
        # Not by a fork: TensorFlow may be in this process, with threads.
        ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool,
        Progress("demo corpus", total=len(known), unit="file") as progress,
    ):
        found = pool.map(_read_clean, known, chunksize=_FILES_PER_CALL)
        for (source, _, language), pairs in zip(known, progress.each(found), strict=True):
            for pair in pairs:
                source_of.setdefault((*pair, language), source.distribution)
    return [SourcedPair(*key, source) for key, source in source_of.items()], len(files) - len(known)


def _read_clean(file: tuple[Source, Path | str, str]) -> list[tuple[str, str]]:
    source, place, language = file
    raw_pairs = _read_file(source, place, language)
    clean = (
        clean_pair(raw.english, raw.foreign, raw.language, number=raw.number) for raw in raw_pairs
    )
    return [pair for pair in clean if pair is not None]


def _list_files(source: Source) -> list[tuple[Path | str, str | None]]:
    return list_catalogues(source) if source.pattern else list_locales()


def _read_file(source: Source, place: Path | str, language: str) -> Iterator[RawPair]:
    read = read_catalogue if source.pattern else read_names
    return read(place, language, source)


def _describe(
    sources: Sequence[Source], train: list[SourcedPair], dev: list[SourcedPair], unknown: int
) -> dict:
    train_pairs, dev_pairs = (Counter(pair.source for pair in part) for part in (train, dev))
    languages = defaultdict(set)
    for pair in (*train, *dev):
        languages[pair.source].add(pair.language)
    by_language = [Counter(pair.language for pair in part) for part in (train, dev)]
    return {
        "sources": [
            {
                "package": source.distribution,
                "version": find_version(source),
                "licence": find_licence(source),
                "kind": source.kind,
                "train_pairs": train_pairs[source.distribution],
                "dev_pairs": dev_pairs[source.distribution],
                "languages": sorted(languages[source.distribution]),
            }
            for source in sources
        ],
        "train_pairs": len(train),
        "dev_pairs": len(dev),
        "files_in_other_languages": unknown,
        "languages": {
            language: {
                "train_pairs": by_language[0][language],
                "dev_pairs": by_language[1][language],
            }
            for language in sorted(set().union(*by_language))
        },
    }


def _write_bitext(folder: Path, pairs: list[SourcedPair]) -> None:
    lines = defaultdict(list)
    for pair in pairs:
        lines[pair.language].append(f"{pair.english}\t{pair.foreign}")
    for language, found in lines.items():
        _write_lines(folder / f"{language}.tsv.gz", found)


def _write_monolingual(folder: Path, pairs: list[SourcedPair]) -> None:
    sentences = defaultdict(set)
    for pair in pairs:
        sentences["en"].add(pair.english)
        sentences[pair.language].add(pair.foreign)
    for language, found in sentences.items():
        _write_lines(folder / f"{language}.txt.gz", found)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    data = "".join(f"{line}\n" for line in sorted(lines)).encode()
    # No name or time in the header, so that the same text gives the same bytes.
    path.write_bytes(gzip.compress(data, compresslevel=6, mtime=0))
