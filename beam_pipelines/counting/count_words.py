"""Counts words, weighted by language. A vocabulary is learned from these counts.

Both sides of a pair are counted, the source as English. The English side of a multi-parallel corpus
occurs once for each language and is counted each time: the data is counted as given.
"""

from __future__ import annotations

import collections
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from beam_pipelines.counting.word_counter import WordCounter
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.reading.readers import ReadCorpus
from beam_pipelines.records.records import ENGLISH, Batch
from beam_pipelines.runtime.storage import join, write_file, write_json
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.record_kinds import kind_of_record
from labse_tf.languages import is_code
from vocab.smoothing import smoothing_coefficients

# Distinct words of a bundle held in memory before they are emitted: about 100 MB.
_MAX_WORDS_HELD = 500_000

# A worker merges the words of one shard in memory. This much text has at most about 2 million
# distinct words (200 MB), usually far fewer. In corpora that exceed the maximum number of shards,
# new words are rare enough for larger shards.
_TEXT_BYTES_PER_SHARD = 64_000_000
_MIN_SHARDS, _MAX_SHARDS = 32, 4096

# The names of the counts in `totals.json`, per language.
WORDS, TOO_LONG, OTHER_LANGUAGE_RECORDS = "words", "too_long", "records_of_other_languages"
TOTALS_FILE = "totals.json"


def plan_word_shards(files: Iterable[CorpusFile]) -> int:
    """Returns a number of shards, from the files' sizes; the words of each fit in memory."""
    needed = math.ceil(sum(map(text_bytes, files)) / _TEXT_BYTES_PER_SHARD)
    return min(max(needed, _MIN_SHARDS), _MAX_SHARDS)


class CountWords(beam.PTransform):
    """Corpus files -> `FOLDER/words-?????-of-?????.tsv` and `FOLDER/totals.json`.

    A line of the former is `word<TAB>count`, sorted by word. The count is the sum over languages
    of the word's count in the language times the language's smoothing coefficient (paper section
    3.2), rounded. Words whose count is then below `min_word_count` or 0 are left out. Shards
    without words are not written.

    Workers combine the counts before the shuffle, in bounded memory, and again after it. Beam's
    own combiners would hold the words of all shards at once before the shuffle.

    Args:
      files: monolingual or bitext.
      folder: where to write.
      smoothing_exponent: 0 to 1; 1 leaves the counts as they are.
      min_word_count: the minimum weighted count.
      max_word_length: in characters; longer words are left out.
      shards: number of files; a worker holds the words of one in memory. See `plan_word_shards`.
    """

    def __init__(
        self,
        files: Sequence[CorpusFile],
        folder: str,
        *,
        smoothing_exponent: float,
        min_word_count: int,
        max_word_length: int,
        shards: int,
    ) -> None:
        super().__init__()
        self._files = files
        self._folder = folder
        self._smoothing_exponent = smoothing_exponent
        self._min_word_count = min_word_count
        self._max_word_length = max_word_length
        self._shards = shards

    def expand(self, begin):
        counted = (
            begin
            | "Read" >> ReadCorpus(self._files)
            | "Count"
            >> beam.ParDo(_CountInBundle(self._max_word_length, self._shards)).with_outputs(
                "totals", main="words"
            )
        )
        totals = counted.totals | "Sum" >> beam.CombinePerKey(sum)
        (
            totals
            | "List" >> beam.combiners.ToList()
            | "Write totals" >> beam.Map(_write_totals, join(self._folder, TOTALS_FILE))
        )
        write = _WriteWords(
            self._folder, self._shards, self._smoothing_exponent, self._min_word_count
        )
        return (
            counted.words
            | "Gather" >> beam.GroupByKey()
            | "Write words" >> beam.ParDo(write, beam.pvalue.AsDict(totals))
        )


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
                value = GlobalWindows.windowed_value(output.value)
                yield beam.pvalue.TaggedOutput(output.tag, value)
            else:
                yield GlobalWindows.windowed_value(output)

    def _take_counts(self) -> Iterator:
        for language, counts in self._counter.take().items():
            shards: dict[int, dict[str, int]] = collections.defaultdict(dict)
            totals = collections.Counter()
            for word, count in counts.items():
                if len(word) > self._max_word_length:
                    totals[TOO_LONG] += count
                else:
                    totals[WORDS] += count
                    # Not `hash`, which differs between processes.
                    shards[zlib.crc32(word.encode("utf-8")) % self._shards][word] = count
            for number, words in shards.items():
                yield number, (language, words)
            for name, total in totals.items():
                yield beam.pvalue.TaggedOutput("totals", ((language, name), total))


class _WriteWords(beam.DoFn):
    def __init__(
        self, folder: str, shards: int, smoothing_exponent: float, min_word_count: int
    ) -> None:
        self._folder = folder
        self._shards = shards
        self._smoothing_exponent = smoothing_exponent
        self._min_word_count = max(1, min_word_count)

    def process(
        self,
        element: tuple[int, Iterable[tuple[str, dict[str, int]]]],
        totals: Mapping[tuple[str, str], int],
    ) -> Iterator[str]:
        number, parts = element
        tokens = {language: n for (language, name), n in totals.items() if name == WORDS}
        counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for language, words in parts:
            counts[language].update(words)
        weighted = weigh_counts(counts, smoothing_coefficients(tokens, self._smoothing_exponent))
        lines = [
            f"{word}\t{count}\n"
            for word, count in sorted(weighted.items())
            if count >= self._min_word_count
        ]
        if not lines:
            return  # Object stores refuse empty files.
        path = join(self._folder, f"words-{number:05}-of-{self._shards:05}.tsv")
        write_file(path, "".join(lines).encode("utf-8"))
        yield path


def weigh_counts(
    counts: Mapping[str, Mapping[str, int]], coefficients: Mapping[str, float]
) -> dict[str, int]:
    """Returns word -> the sum over languages of count times coefficient, rounded to an integer."""
    weighted: dict[str, float] = collections.defaultdict(float)
    # Sorted, because a sum of floats depends on the order, and the order of arrival on the runner.
    for language in sorted(counts):
        coefficient = coefficients[language]
        for word, count in counts[language].items():
            weighted[word] += coefficient * count
    return {word: round(weight) for word, weight in weighted.items()}


def _write_totals(totals: list[tuple[tuple[str, str], int]], path: str) -> None:
    languages: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for (language, name), total in sorted(totals):
        languages[language][name] = total
    write_json(path, languages)
