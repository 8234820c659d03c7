"""Compares our word count with a naive one on Beam, on the same text in one run.

    python -m benchmarks.vocab.word_count [INPUT ...] [--megabytes 44]

The naive pipeline passes one element per word of the text to `Count.PerElement`. Both use the same
reader, run on the direct runner in this process and write their counts to files. Prints the ratio.
INPUT is files or folders of text; the default is the demo corpus, from installed packages. If there
is less text than --megabytes, it is read repeatedly.
"""

from __future__ import annotations

import argparse
import collections
import math
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam

from beam_pipelines.counting.count_words import CountWords, plan_word_shards
from beam_pipelines.counting.word_counts import Settings, read_counts
from beam_pipelines.reading.readers import ReadCorpus, read_file
from beam_pipelines.records.records import ENGLISH, Batch, Sentence, texts_of
from beam_pipelines.runtime.engine import Engine
from beam_pipelines.runtime.runners import run_pipeline
from benchmarks import machine
from labse_tf.cli.main import quiet_libraries
from labse_tf.demo.corpus.write import write_demo_corpus
from labse_tf.files.corpus_files import CorpusFile, find_corpus_files
from vocab.basic_tokenizer import plain_spaces, split_words

_MAX_WORD_LENGTH = 50  # characters


class NaiveCount(beam.PTransform):
    """Corpus files -> files of `word<TAB>language<TAB>count`."""

    def __init__(self, files: list[CorpusFile], folder: Path) -> None:
        super().__init__()
        self._files = files
        self._folder = folder

    def expand(self, begin):
        return (
            begin
            | ReadCorpus(self._files)
            | beam.FlatMap(_words_of)
            | beam.combiners.Count.PerElement()
            | beam.MapTuple(lambda key, count: f"{key[0]}\t{key[1]}\t{count}")
            | beam.io.WriteToText(str(self._folder / "words"))
        )


def _words_of(batch: Batch) -> Iterator[tuple[str, str]]:
    for record in batch.records:
        texts = texts_of(record)
        languages = [batch.language] if isinstance(record, Sentence) else [ENGLISH, batch.language]
        for text, language in zip(texts, languages, strict=True):
            for word in split_words(plain_spaces(text)):
                if len(word) <= _MAX_WORD_LENGTH:
                    yield word, language


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="*", metavar="INPUT")
    parser.add_argument("--megabytes", type=float, default=44, help="at least so much text")
    args = parser.parse_args(argv)
    quiet_libraries()
    with tempfile.TemporaryDirectory(prefix="labse-bench-") as name:
        folder = Path(name)
        if not args.inputs:
            write_demo_corpus(folder / "demo")
        files = find_corpus_files(args.inputs or [str(folder / "demo")])
        once = sum(len(text.encode()) for file in files for text in _texts(file)) / 1e6
        files *= math.ceil(args.megabytes / once)
        megabytes = once * math.ceil(args.megabytes / once)
        ours, ours_seconds = _run_ours(files, folder / "ours")
        naive, naive_seconds = _run_naive(files, folder / "naive")
    assert ours == naive, "the two count differently"
    print(f"{machine.describe()}, Python {platform.python_version()}, Beam {beam.__version__}")
    print(f"{megabytes:.0f} MB, {sum(ours.values())} words, {len(ours)} distinct; the same counts")
    for name, seconds in (("naive", naive_seconds), ("ours", ours_seconds)):
        print(f"{name:6}{seconds:7.1f} s{megabytes / seconds:7.1f} MB/s")
    print(f"{naive_seconds / ours_seconds:.1f} times faster")


def _texts(file: CorpusFile) -> Iterator[str]:
    for record in read_file(file):
        yield from texts_of(record)


def _run_ours(files: list[CorpusFile], folder: Path) -> tuple[dict[str, int], float]:
    folder.mkdir()
    settings = Settings(smoothing_exponent=1.0, max_word_length=_MAX_WORD_LENGTH)
    job = CountWords(files, str(folder), **settings._asdict(), shards=plan_word_shards(files))
    start = time.perf_counter()
    run_pipeline(job, [], Engine([]))
    seconds = time.perf_counter() - start
    return read_counts(folder).words, seconds


def _run_naive(files: list[CorpusFile], folder: Path) -> tuple[dict[str, int], float]:
    folder.mkdir()
    start = time.perf_counter()
    run_pipeline(NaiveCount(files, folder), [], Engine([]))
    seconds = time.perf_counter() - start
    words: collections.Counter[str] = collections.Counter()
    for path in folder.iterdir():
        for line in path.read_bytes().decode().split("\n")[:-1]:
            word, _, count = line.split("\t")
            words[word] += int(count)
    return dict(words), seconds


if __name__ == "__main__":
    main()
