"""Counts words, weighted by language, in a Beam job. A vocabulary is learned from these counts.

Both sides of a pair are counted, the source as English. The English side of a multi-parallel corpus
occurs once for each language and is counted each time: the data is counted as given.

DIR/words-?????-of-?????.tsv  lines `word<TAB>count`, sorted by word; see `CountWords`
DIR/totals.json               language -> {"words": n, "too_long": n}, in running text
DIR/settings.json             the settings, and the files that were counted
"""

from __future__ import annotations

import collections
import glob
import heapq
import itertools
import logging
import math
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from beam_pipelines.reading.find import find_files, text_bytes
from beam_pipelines.reading.readers import ReadCorpus
from beam_pipelines.records import Batch
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.storage import (
    STORAGE,
    absolute,
    check_free_path,
    job_folder,
    join,
    open_file,
    read_json,
    write_file,
    write_json,
)
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.outputs import changed_settings
from labse_tf.files.record_kinds import ENGLISH, kind_of_record
from labse_tf.languages import is_code
from vocab.basic_tokenizer import plain_spaces, split_words
from vocab.smoothing import smoothing_coefficients, weigh_counts

_log = logging.getLogger("labse")

# The learner uses only this many of the most frequent words, so no more are read into memory.
_MAX_WORDS = 5_000_000
# Distinct words of a bundle held in memory before they are emitted: about 100 MB.
_MAX_WORDS_HELD = 500_000
# Text held before it is split, in characters: at most 80 MB, if nothing repeats.
_CHARACTERS_HELD = 20_000_000
# Pieces split at once. In scripts without spaces a piece is a whole sentence.
_PIECES_AT_ONCE = 1000

# A worker merges the words of one shard in memory. This much text has at most about 2 million
# distinct words (200 MB), usually far fewer. In corpora that exceed the maximum number of shards,
# new words are rare enough for larger shards.
_TEXT_BYTES_PER_SHARD = 64_000_000
_MIN_SHARDS, _MAX_SHARDS = 32, 4096

# The names of the counts in `totals.json`, per language.
WORDS, TOO_LONG, OTHER_LANGUAGE_RECORDS = "words", "too_long", "records_of_other_languages"
TOTALS_FILE, SETTINGS_FILE = "totals.json", "settings.json"

# Version of the word splitting. Counts without this number have words that contain Unicode spaces.
_WORDS_VERSION = 2


class Settings(NamedTuple):
    smoothing_exponent: float = 0.3  # 0 to 1; 1 leaves the counts as they are.
    min_word_count: int = 1  # The minimum weighted count.
    max_word_length: int = 50  # In characters; longer words are left out.


class WordCounts(NamedTuple):
    # Word -> weighted count, an integer, at least 1; by descending count, then by code point.
    words: dict[str, int]
    distinct: int  # Number of distinct words counted, of which `words` holds the most frequent.
    tokens: dict[str, int]  # Language -> words of running text, without those that were too long.
    too_long: dict[str, int]  # Language -> words of running text that were longer than the limit.
    other_languages: dict[str, int]  # Unsupported language code -> records left out.


def count(
    inputs: Sequence[str],
    settings: Settings,
    *,
    folder: str | os.PathLike[str] | None = None,
    beam_options: Sequence[str] = (),
) -> WordCounts:
    """Counts the words of the corpus files of both kinds in `inputs`: files, folders or globs.

    Args:
      folder: where the counts are kept. Counts that it already holds, of the same files with the
        same settings, are read instead of being made again. A cluster needs one that its workers
        reach. None: a temporary folder on this machine.
      beam_options: options for Beam, as strings; if empty, the direct runner is used.

    Raises:
      InputError: for inputs that are missing or damaged, or a `folder` that holds anything else.
    """
    engine = Engine(beam_options)
    if folder is not None:
        folder = STORAGE.resolve(folder)
    elif engine.is_distributed:
        remedy = "name a folder that all workers reach, for the counts"
        raise InputError("--counts is missing", remedy=remedy)
    engine.check_paths([*inputs, folder or ""])
    files = find_files(inputs)
    paths = [path for file in files for path in file.paths]
    origin = {
        "words_version": _WORDS_VERSION,
        "settings": settings._asdict(),
        "files": {absolute(path): STORAGE.stamp(path) for path in paths},
    }
    if folder is None:
        place = tempfile.TemporaryDirectory(prefix="labse-words-")
    elif _is_kept(folder, origin):
        _log.info("%s: reusing the word counts of these files", folder)
        return _read_counts(folder)
    else:
        free = check_free_path(folder, overwrite=False, is_folder=True)
        place = job_folder(free, SETTINGS_FILE, overwrite=False)
    with place as out:
        _log.info("counting words in %d files", len(files))
        moved = [file.moved(absolute) for file in files]
        run_pipeline(CountWords(out, moved, settings, plan_word_shards(files)), paths, engine)
        write_json(join(out, SETTINGS_FILE), origin)
        return _read_counts(out)


def plan_word_shards(files: Iterable[CorpusFile]) -> int:
    """Returns a number of shards, from the files' sizes; the words of each fit in memory."""
    needed = math.ceil(sum(map(text_bytes, files)) / _TEXT_BYTES_PER_SHARD)
    return min(max(needed, _MIN_SHARDS), _MAX_SHARDS)


def _read_counts(folder: str) -> WordCounts:
    distinct = itertools.count()
    # `zip` counts the words as they are read.
    pairs = (pair for pair, _ in zip(_read_words(folder), distinct, strict=False))
    ordered = heapq.nsmallest(_MAX_WORDS, pairs, key=lambda pair: (-pair[1], pair[0]))
    totals = read_json(join(folder, TOTALS_FILE))
    tokens, too_long, other = (
        {language: row[name] for language, row in totals.items() if name in row}
        for name in (WORDS, TOO_LONG, OTHER_LANGUAGE_RECORDS)
    )
    return WordCounts(dict(ordered), next(distinct), tokens, too_long, other)


def _read_words(folder: str) -> Iterator[tuple[str, int]]:
    for path in STORAGE.glob(join(glob.escape(folder), "words-*.tsv")):
        with open_file(path) as stream:
            # Bytes, since only a line feed ends a line: words may contain U+2028 and the like.
            for line in stream:
                word, number = line.decode("utf-8").split("\t")
                yield word, int(number)


def _is_kept(folder: str, origin: dict) -> bool:
    """Whether the folder holds these counts, not none; raises InputError for others."""
    path = join(folder, SETTINGS_FILE)
    if not STORAGE.exists(path):
        return False
    try:
        kept = read_json(path)
    except ValueError as error:
        raise InputError(f"is damaged ({error})", path=path, remedy="remove the folder") from error
    before, now = ({**one, **one.get("settings", {}), "settings": None} for one in (kept, origin))
    if not (names := changed_settings(before, now)):
        return True
    problem = f"holds word counts of a job with other settings ({', '.join(names)})"
    remedy = "name another folder for --counts, or remove this one"
    raise InputError(problem, path=folder, remedy=remedy)


@beam.ptransform_fn
def CountWords(begin, folder: str, files: Sequence[CorpusFile], settings: Settings, shards: int):
    """Corpus files -> `FOLDER/words-?????-of-?????.tsv` and `FOLDER/totals.json`.

    A count is the sum over languages of the word's count in the language times the language's
    smoothing coefficient (paper section 3.2), rounded. Words whose count is then below the minimum
    or 0 are left out. Shards without words are not written.

    Workers combine the counts before the shuffle, in bounded memory, and again after it. Beam's
    own combiners would hold the words of all shards at once before the shuffle.
    """
    count_step = beam.ParDo(_CountInBundle(settings.max_word_length, shards))
    counted = (
        begin
        | "Read" >> ReadCorpus(files)
        | "Count" >> count_step.with_outputs("totals", main="words")
    )
    totals = counted.totals | "Sum" >> beam.CombinePerKey(sum)
    write_totals = beam.Map(_write_totals, join(folder, TOTALS_FILE))
    totals | "List" >> beam.combiners.ToList() | "Write totals" >> write_totals
    write = beam.Map(_write_words, folder, shards, settings, beam.pvalue.AsDict(totals))
    return counted.words | "Gather" >> beam.GroupByKey() | "Write words" >> write


class _CountInBundle(beam.DoFn):
    """Batches -> `(shard, (language, {word: count}))`, and totals `((language, name), number)`.

    Counts are emitted only at the end of the bundle or when memory is short, so that a frequent
    word is one element of the shuffle, not one per occurrence.
    """

    def __init__(self, max_word_length: int, shards: int) -> None:
        self._max_word_length = max_word_length
        self._shards = shards

    def start_bundle(self) -> None:
        self._counter = WordCounter()

    def process(self, batch: Batch) -> Iterator:
        if not is_code(batch.language):
            total = ((batch.language, OTHER_LANGUAGE_RECORDS), len(batch.records))
            yield beam.pvalue.TaggedOutput("totals", total)
            return
        kind = kind_of_record(type(batch.records[0]))
        for place, field in enumerate(kind.fields):
            language = ENGLISH if field in kind.english else batch.language
            self._counter.add(language, [record[place] for record in batch.records])
        if len(self._counter) > _MAX_WORDS_HELD:
            yield from self._take_counts()

    def finish_bundle(self) -> Iterator:
        for output in self._take_counts():
            if isinstance(output, beam.pvalue.TaggedOutput):
                output.value = GlobalWindows.windowed_value(output.value)
                yield output
            else:
                yield GlobalWindows.windowed_value(output)

    def _take_counts(self) -> Iterator:
        for language, counts in self._counter.take().items():
            shards: dict[int, dict[str, int]] = collections.defaultdict(dict)
            totals = collections.Counter()
            for word, number in counts.items():
                if len(word) > self._max_word_length:
                    totals[TOO_LONG] += number
                else:
                    totals[WORDS] += number
                    # Not `hash`, which differs between processes.
                    shards[zlib.crc32(word.encode("utf-8")) % self._shards][word] = number
            for shard, words in shards.items():
                yield shard, (language, words)
            for name, total in totals.items():
                yield beam.pvalue.TaggedOutput("totals", ((language, name), total))


class WordCounter:
    """Word counts by language; `len()` is the number of distinct words counted so far.

    Words are divided at every Unicode space. Otherwise a piece could contain one, and other
    programs would read it from the vocabulary file as another piece or as none.

    Text is repetitive, so it is first cut at ASCII spaces, which always divide words, and only the
    distinct pieces between them are split into words. That halves the time; the counts are the
    same.
    """

    def __init__(self) -> None:
        self._pieces = collections.defaultdict(collections.Counter)
        self._words = collections.defaultdict(collections.Counter)
        self._characters = 0

    def __len__(self) -> int:
        return sum(map(len, self._words.values()))

    def add(self, language: str, texts: Sequence[str]) -> None:
        """Counts the words of texts; no word spans two texts."""
        text = plain_spaces(" ".join(texts))
        self._pieces[language].update(text.split(" "))
        self._characters += len(text)
        if self._characters > _CHARACTERS_HELD:
            self._split_pieces()

    def take(self) -> dict[str, collections.Counter[str]]:
        """Returns language -> word -> count, and resets the counter."""
        self._split_pieces()
        words, self._words = self._words, collections.defaultdict(collections.Counter)
        return words

    def _split_pieces(self) -> None:
        for language, pieces in self._pieces.items():
            words = self._words[language]
            once = [piece for piece, number in pieces.items() if number == 1]
            for piece, number in pieces.items():
                for word in split_words(piece) if number > 1 else ():
                    words[word] += number
            for start in range(0, len(once), _PIECES_AT_ONCE):
                words.update(split_words(" ".join(once[start : start + _PIECES_AT_ONCE])))
        self._pieces.clear()
        self._characters = 0


def _write_words(
    element: tuple[int, Iterable[tuple[str, dict[str, int]]]],
    folder: str,
    shards: int,
    settings: Settings,
    totals: Mapping[tuple[str, str], int],
) -> None:
    number, parts = element
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for language, words in parts:
        counts[language].update(words)
    # Sorted, because a sum of floats depends on the order, and the order of arrival on the runner.
    tokens = {one: total for (one, name), total in sorted(totals.items()) if name == WORDS}
    weighted = weigh_counts(counts, smoothing_coefficients(tokens, settings.smoothing_exponent))
    rounded = ((word, round(weight)) for word, weight in sorted(weighted.items()))
    least = max(1, settings.min_word_count)
    lines = [f"{word}\t{total}\n" for word, total in rounded if total >= least]
    # Object stores refuse empty files.
    if lines:
        path = join(folder, f"words-{number:05}-of-{shards:05}.tsv")
        write_file(path, "".join(lines).encode("utf-8"))


def _write_totals(totals: list[tuple[tuple[str, str], int]], path: str) -> None:
    languages: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for (language, name), total in sorted(totals):
        languages[language][name] = total
    write_json(path, languages)
