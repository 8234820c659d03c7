"""Word counts in a folder: made by a Beam job, kept on request, and read back.

DIR/words-?????-of-?????.tsv  see `count_words.CountWords`
DIR/totals.json               language -> {"words": n, "too_long": n}, in running text
DIR/settings.json             the settings, and the files that were counted
"""

from __future__ import annotations

import contextlib
import glob
import heapq
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from beam_pipelines.counting.count_words import (
    OTHER_LANGUAGE_RECORDS,
    TOO_LONG,
    TOTALS_FILE,
    WORDS,
    CountWords,
    plan_word_shards,
)
from beam_pipelines.reading.find import find_files
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.storage import (
    STORAGE,
    absolute,
    check_free_folder,
    job_folder,
    join,
    open_file,
    read_json,
    write_json,
)
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile

_log = logging.getLogger("labse")

SETTINGS_FILE = "settings.json"

# Version of the word splitting. Counts without this number have words that contain Unicode spaces.
_WORDS_VERSION = 2


class Settings(NamedTuple):
    """The settings that the counts depend on; see `CountWords`."""

    smoothing_exponent: float = 0.3
    min_word_count: int = 1
    max_word_length: int = 50


class WordCounts(NamedTuple):
    """The result of `count`.

    Attributes:
      words: word -> weighted count, an integer, at least 1; by descending count, then by code
        point.
      distinct: number of distinct words counted, of which `words` holds the most frequent.
      tokens: language -> words of running text, without those that were too long.
      too_long: language -> words of running text that were longer than the limit.
      other_languages: unsupported language code -> records left out.
    """

    words: dict[str, int]
    distinct: int
    tokens: dict[str, int]
    too_long: dict[str, int]
    other_languages: dict[str, int]


def count(
    inputs: Sequence[str],
    settings: Settings,
    *,
    folder: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    max_words: int | None = None,
    beam_options: Sequence[str] = (),
) -> WordCounts:
    """Counts the words of the corpus files of both kinds in `inputs`.

    Args:
      inputs: files, folders or globs.
      settings: what to count, and how.
      folder: where the counts are kept. Counts that it already holds, of the same files with the
        same settings, are read instead of being made again. A cluster needs one that its workers
        reach. None: a temporary folder on this machine.
      shards: number of files that the words are written to; None: `plan_word_shards`.
      max_words: the maximum number of words to read back; None reads all.
      beam_options: options for Beam, as strings; if empty, the direct runner is used.

    Raises:
      InputError: for inputs that are missing or damaged, or a `folder` that holds anything else.
    """
    engine = Engine(beam_options)
    if folder is not None:
        folder = STORAGE.resolve(folder)
    elif engine.is_distributed:
        raise InputError(
            "--counts is missing", remedy="name a folder that all workers reach, for the counts"
        )
    engine.check_paths([*inputs, *([] if folder is None else [folder])])
    files = find_files(inputs)
    origin = _describe_origin(files, settings)
    if folder is not None and _is_kept(folder, origin):
        _log.info("%s: reusing the word counts of these files", folder)
        return read_counts(folder, max_words=max_words)
    with _place(folder) as place:
        _log.info("counting words in %d files", len(files))
        job = CountWords(
            [file.moved(absolute) for file in files],
            place,
            **settings._asdict(),
            shards=plan_word_shards(files) if shards is None else shards,
        )
        run_pipeline(job, [path for file in files for path in file.paths], engine)
        write_json(join(place, SETTINGS_FILE), origin)
        return read_counts(place, max_words=max_words)


def read_counts(folder: str | os.PathLike[str], *, max_words: int | None = None) -> WordCounts:
    """Returns the counts in a folder, with at most `max_words` words in memory."""
    folder = os.fspath(folder)
    pairs = _Counted(_read_words(folder))
    # The key ascends as counts descend, for `nsmallest`, which holds at most `max_words` pairs.
    if max_words is None:
        ordered = sorted(pairs, key=_by_frequency)
    else:
        ordered = heapq.nsmallest(max_words, pairs, key=_by_frequency)
    totals = read_json(join(folder, TOTALS_FILE))
    tokens, too_long, other = (
        {language: row[name] for language, row in totals.items() if name in row}
        for name in (WORDS, TOO_LONG, OTHER_LANGUAGE_RECORDS)
    )
    return WordCounts(dict(ordered), pairs.number, tokens, too_long, other)


class _Counted:
    """Counts the items that are iterated over."""

    def __init__(self, items: Iterator) -> None:
        self.number = 0
        self._items = items

    def __iter__(self) -> Iterator:
        for item in self._items:
            self.number += 1
            yield item


def _by_frequency(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _read_words(folder: str) -> Iterator[tuple[str, int]]:
    for path in STORAGE.glob(join(glob.escape(folder), "words-*.tsv")):
        with open_file(path) as stream:
            # Bytes, since only a line feed ends a line: words may contain U+2028 and the like.
            for line in stream:
                word, count_ = line.decode("utf-8").split("\t")
                yield word, int(count_)


@contextlib.contextmanager
def _place(folder: str | None) -> Iterator[str]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="labse-words-") as temporary:
            yield temporary
    else:
        free = check_free_folder(folder, overwrite=False)
        with job_folder(free, SETTINGS_FILE, overwrite=False) as partial:
            yield partial


def _describe_origin(files: Sequence[CorpusFile], settings: Settings) -> dict:
    return {
        "words_version": _WORDS_VERSION,
        "settings": settings._asdict(),
        "files": {absolute(path): STORAGE.stamp(path) for file in files for path in file.paths},
    }


def _is_kept(folder: str, origin: dict) -> bool:
    """Whether the folder holds these counts.

    Raises:
      InputError: if it holds other counts.
    """
    path = join(folder, SETTINGS_FILE)
    if not STORAGE.exists(path):
        return False
    try:
        kept = read_json(path)
    except ValueError as error:
        raise InputError(f"is damaged ({error})", path=path, remedy="remove the folder") from error
    if kept == origin:
        return True
    raise InputError(
        f"holds different word counts: {_difference(kept, origin)}",
        path=folder,
        remedy="name another folder for --counts, or remove this one",
    )


def _difference(kept: dict, wanted: dict) -> str:
    if kept.get("words_version") != wanted["words_version"]:
        return "another version of this program split the text"
    for name, value in wanted["settings"].items():
        before = kept.get("settings", {}).get(name)
        if before != value:
            return f"--{name.replace('_', '-')} was {before}, now {value}"
    files = kept.get("files", {})
    changed = [
        path
        for path in sorted({*files, *wanted["files"]})
        if files.get(path) != wanted["files"].get(path)
    ]
    return f"{len(changed)} input files differ, first {changed[0]}"
