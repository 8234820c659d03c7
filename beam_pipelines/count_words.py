"""Counts words, weighted by language: what a vocabulary is learned from.

Both sides of a pair are counted, the source as English. The English side of a multi-parallel corpus
comes once with every language and counts as often: the counts are those of the data as given.
"""

from __future__ import annotations

import collections
import json
import logging
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindows

from beam_pipelines.readers import ReadCorpus
from beam_pipelines.records import Batch, texts_by_language
from beam_pipelines.runners import run_pipeline
from labse_tf.corpus_files import CorpusFile, find_corpus_files
from vocab.basic_tokenizer import split_words
from vocab.smoothing import smoothing_coefficients

_log = logging.getLogger("labse")

# A word's checksum decides its shard; a worker merges one shard of words at a time in memory.
_SHARDS = 32
# Distinct words of a bundle held in memory before they are passed on: about 100 MB.
_MAX_WORDS_HELD = 500_000

# What is left out of the word counts is counted under this name, per language.
_TOO_LONG = "too_long"
_TOKENS = "tokens"


class WordCounts(NamedTuple):
    """The result of `count`.

    Attributes:
      words: word -> weighted count, an integer, at least 1; most frequent words first.
      tokens: language -> words of running text, without those that were too long.
      too_long: language -> words of running text that were longer than the limit.
    """

    words: dict[str, int]
    tokens: dict[str, int]
    too_long: dict[str, int]


class CountWords(beam.PTransform):
    """Corpus files -> `FOLDER/words-?????-of-?????.tsv` and `FOLDER/totals.json`.

    A line of the former is `word<TAB>count`, sorted by word. The count is the sum over languages
    of the word's count there times the language's smoothing coefficient (paper section 3.2),
    rounded. Words that come below `min_word_count` by this are left out.

    Args:
      files: of either kind.
      folder: where to write.
      smoothing_exponent: 0 to 1; 1 leaves the counts as they are.
      min_word_count: the least weighted count.
      max_word_length: in characters; longer words are left out.
    """

    def __init__(
        self,
        files: Sequence[CorpusFile],
        folder: str,
        *,
        smoothing_exponent: float,
        min_word_count: int,
        max_word_length: int,
    ) -> None:
        super().__init__()
        self._files = files
        self._folder = folder
        self._smoothing_exponent = smoothing_exponent
        self._min_word_count = min_word_count
        self._max_word_length = max_word_length

    def expand(self, begin):
        counted = (
            begin
            | "Read" >> ReadCorpus(self._files)
            | "Count"
            >> beam.ParDo(_CountInBundle(self._max_word_length)).with_outputs(
                "totals", main="words"
            )
        )
        totals = counted.totals | "Sum" >> beam.CombinePerKey(sum)
        (
            totals
            | "List" >> beam.combiners.ToList()
            | "Write totals" >> beam.Map(_write_totals, f"{self._folder}/totals.json")
        )
        return (
            counted.words
            | "Gather" >> beam.GroupByKey()
            | "Write words"
            >> beam.ParDo(
                _WriteWords(self._folder, self._smoothing_exponent, self._min_word_count),
                beam.pvalue.AsDict(totals),
            )
        )


class _CountInBundle(beam.DoFn):
    """Batches -> `(shard, (language, {word: count}))`, and totals `((language, name), number)`.

    Counts leave only when the bundle ends or memory asks for it, so that a frequent word is one
    element of the shuffle, not one for each time that it occurs.
    """

    def __init__(self, max_word_length: int) -> None:
        self._max_word_length = max_word_length

    def start_bundle(self) -> None:
        self._counts: dict[str, collections.Counter[str]] = {}

    def process(self, batch: Batch) -> Iterator:
        for record in batch.records:
            for language, text in texts_by_language(record):
                self._add(language, text)
        if sum(map(len, self._counts.values())) > _MAX_WORDS_HELD:
            yield from self._take_counts()

    def finish_bundle(self) -> Iterator:
        for output in self._take_counts():
            if isinstance(output, beam.pvalue.TaggedOutput):
                value = GlobalWindows.windowed_value(output.value)
                yield beam.pvalue.TaggedOutput(output.tag, value)
            else:
                yield GlobalWindows.windowed_value(output)

    def _add(self, language: str, text: str) -> None:
        counts = self._counts.get(language)
        if counts is None:
            counts = self._counts[language] = collections.Counter()
        counts.update(split_words(text))

    def _take_counts(self) -> Iterator:
        for language, counts in self._counts.items():
            shards: list[dict[str, int]] = [{} for _ in range(_SHARDS)]
            totals = collections.Counter()
            for word, count in counts.items():
                if len(word) > self._max_word_length:
                    totals[_TOO_LONG] += count
                else:
                    totals[_TOKENS] += count
                    # Not `hash`, which differs from process to process.
                    shards[zlib.crc32(word.encode("utf-8")) % _SHARDS][word] = count
            for number, words in enumerate(shards):
                if words:
                    yield number, (language, words)
            for name, total in totals.items():
                yield beam.pvalue.TaggedOutput("totals", ((language, name), total))
        self._counts = {}


class _WriteWords(beam.DoFn):
    def __init__(self, folder: str, smoothing_exponent: float, min_word_count: int) -> None:
        self._folder = folder
        self._smoothing_exponent = smoothing_exponent
        self._min_word_count = max(1, min_word_count)

    def process(
        self,
        element: tuple[int, Iterable[tuple[str, dict[str, int]]]],
        totals: Mapping[tuple[str, str], int],
    ) -> Iterator[str]:
        number, parts = element
        tokens = {language: n for (language, name), n in totals.items() if name == _TOKENS}
        counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for language, words in parts:
            counts[language].update(words)
        weighted = weigh_counts(counts, smoothing_coefficients(tokens, self._smoothing_exponent))
        lines = [
            f"{word}\t{count}\n"
            for word, count in sorted(weighted.items())
            if count >= self._min_word_count
        ]
        path = f"{self._folder}/words-{number:05}-of-{_SHARDS:05}.tsv"
        _write_text(path, "".join(lines))
        yield path


def weigh_counts(
    counts: Mapping[str, Mapping[str, int]], coefficients: Mapping[str, float]
) -> dict[str, int]:
    """Returns word -> the sum over languages of count times coefficient, rounded to an integer."""
    weighted: dict[str, float] = collections.defaultdict(float)
    # Sorted: a sum of floats depends on its order, and the order of arrival on the runner.
    for language in sorted(counts):
        coefficient = coefficients[language]
        for word, count in counts[language].items():
            weighted[word] += coefficient * count
    return {word: round(weight) for word, weight in weighted.items()}


def _write_totals(totals: list[tuple[tuple[str, str], int]], path: str) -> None:
    _write_text(path, json.dumps(sorted(totals)))


def _write_text(path: str, text: str) -> None:
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(text.encode("utf-8"))


def count(
    inputs: Sequence[str],
    *,
    smoothing_exponent: float = 0.3,
    min_word_count: int = 1,
    max_word_length: int = 50,
    beam_options: Sequence[str] = (),
    temporary_parent: str | Path | None = None,
) -> WordCounts:
    """Counts the words of the corpus files of both kinds in `inputs`; see `CountWords`.

    Args:
      inputs: files, folders or globs.
      smoothing_exponent: 0 to 1; 1 leaves the counts as they are.
      min_word_count: words with a lower weighted count are left out.
      max_word_length: in characters; longer words are left out.
      beam_options: options for Beam, as strings; none choose the direct runner.
      temporary_parent: where the folder for the pipeline's output is made and removed again; it
        must be visible to all workers. None is the system's place for temporary files.

    Raises:
      InputError: for inputs that are not there or damaged.
    """
    files = find_corpus_files(inputs)
    _log.info("counting words in %d files", len(files))
    with tempfile.TemporaryDirectory(prefix="labse-words-", dir=temporary_parent) as folder:
        job = CountWords(
            files,
            folder,
            smoothing_exponent=smoothing_exponent,
            min_word_count=min_word_count,
            max_word_length=max_word_length,
        )
        run_pipeline(job, [file.path for file in files], beam_options)
        return _read_result(Path(folder))


def _read_result(folder: Path) -> WordCounts:
    words: dict[str, int] = {}
    for path in sorted(folder.glob("words-*.tsv")):
        # Only a line feed ends a line: words may hold U+2028 and its like.
        for line in path.read_bytes().decode("utf-8").split("\n")[:-1]:
            word, count_ = line.split("\t")
            words[word] = int(count_)
    totals = json.loads((folder / "totals.json").read_text(encoding="utf-8"))
    tokens, too_long = (
        {language: n for (language, name), n in totals if name == wanted}
        for wanted in (_TOKENS, _TOO_LONG)
    )
    by_frequency = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return WordCounts(dict(by_frequency), tokens, too_long)
