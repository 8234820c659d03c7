"""Endless, shuffled streams of text from corpus files, languages mixed as asked.

A stream is a function of its files, its seed and TensorFlow's global seed (which training sets):
the same call gives the same order on every machine, and a resumed run can skip what it has seen.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import (
    MOSES,
    SHARD,
    TEXT,
    TFRECORD,
    TSV,
    CorpusFile,
    find_plain_files,
)
from labse_tf.files.record_kinds import KINDS, describe_fields

_RECORDS_PER_CALL = 1000  # A call from tf.data into Python takes longer than to read a record.
_READ_BUFFER = 1 << 18  # Bytes a file; there may be many.
_SHUFFLE_BUFFER = 20_000  # Records a language: its whole data where it is small.

_MISSING_FEATURE = re.compile(r"Feature: (\w+) \(data type: string\) is required but could not be")
_NEGATIVES = "negatives"

_LINE_READERS = {TEXT: textio.read_lines, TSV: textio.read_pairs}

# TensorFlow turns an exception in a generator into its own; here the original is found again.
_failures: list[InputError] = []


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Inside, a broken input file raises InputError and not TensorFlow's wrapping of it."""
    _failures.clear()
    try:
        yield
    except tf.errors.OpError as error:
        if _failures:
            raise _failures.pop() from error
        if isinstance(error, tf.errors.OutOfRangeError):  # Streams are endless, if not empty.
            raise no_records() from error
        if isinstance(error, tf.errors.DataLossError):
            raise InputError(
                f"a TFRecord shard is damaged ({error.message})", remedy="make the shards again"
            ) from error
        if missing := _MISSING_FEATURE.search(str(error)):
            raise InputError(
                f"a record of a TFRecord file has no feature '{missing[1]}'",
                remedy=describe_fields(),
            ) from error
        raise


def no_records() -> InputError:
    """Returns the error for corpora that are empty."""
    return InputError(
        "the corpora hold no records", remedy="see why in report.json of the filter job"
    )


def find_files(
    inputs: Sequence[str], kind: str, languages: Sequence[str], *, key: str
) -> list[CorpusFile]:
    """Returns the corpus files of `kind` in the languages asked for (all, if none are named).

    Raises:
      InputError: if there are none; names the configuration key.
    """
    if not inputs:
        raise InputError(f"'{key}' is empty", remedy=f"add --set {key}=[DIR]")
    files = find_plain_files(inputs, kind=kind)
    kept = [file for file in files if not languages or file.language in languages]
    if not kept:
        raise InputError(
            f"'{key}' has no text in {', '.join(languages)}", remedy="check 'languages'"
        )
    return kept


def require_negatives(files: Sequence[CorpusFile]) -> None:
    """Refuses bitext in which no file has hard negatives, by the first line of each.

    Raises:
      InputError: if there are none.
    """
    for file in files:
        if file.format == TSV:
            _, line = next(textio.read_lines(file.path))
            if line.count("\t") > 1:
                return
    raise InputError(
        "no file has a third column, but 'train.hard_negatives' is not 0",
        path=files[0].path,
        remedy="name the --out of `labse mine-negatives` in 'train.bitext'",
    )


def language_streams(
    files: Sequence[CorpusFile], *, seed: int, number_files: bool = False, negatives: int = 0
) -> dict[str, tf.data.Dataset]:
    """Returns for each language an endless shuffled dataset of its records.

    An element is a serialized `tf.train.Example`. It stays so until whole batches are parsed:
    a graph to parse each language's records would take longer to build than to run. With
    `number_files` it is such an example and the int32 number of its file in `sorted(files)`.
    `negatives` is the number of hard negatives that `parse` is going to read of each.
    """
    numbers = {file: number for number, file in enumerate(sorted(files))} if number_files else None
    by_language = groupby(sorted(files, key=_language), key=_language)
    return {
        language: _stream(sorted(group), numbers, seed=seed + index, negatives=negatives)
        for index, (language, group) in enumerate(by_language)
    }


def mix(
    streams: dict[str, tf.data.Dataset], weights: dict[str, float], *, seed: int
) -> tf.data.Dataset:
    """Returns one stream that draws each element from a language by its weight.

    Weights need not add up to 1.
    """
    languages = sorted(streams)
    if len(languages) == 1:
        return streams[languages[0]]
    return tf.data.Dataset.sample_from_datasets(
        [streams[language] for language in languages],
        weights=[weights[language] for language in languages],
        seed=seed,
    )


def parse(kind: str, serialized: tf.Tensor, *, negatives: int = 0) -> list[tf.Tensor]:
    """Returns the columns of serialized records.

    Args:
      kind: of the corpus.
      serialized: `[batch]` strings from a stream of as many `negatives`.
      negatives: the hard negatives to read of each pair.

    Returns:
      The texts of the kind's fields, so [text] or [source, target], `[batch]` strings each; with
      `negatives` a further column of `[batch, negatives]` strings, "" where a pair has fewer (clean
      shards have none).
    """
    spec = {name: tf.io.FixedLenFeature([], tf.string) for name in KINDS[kind].fields}
    if negatives:
        spec[_NEGATIVES] = tf.io.FixedLenFeature([negatives], tf.string, [""] * negatives)
    records = tf.io.parse_example(serialized, spec)
    return [records[name] for name in spec]


def _language(file: CorpusFile) -> str:
    return file.language


def _stream(
    files: Sequence[CorpusFile],
    numbers: dict[CorpusFile, int] | None,
    *,
    seed: int,
    negatives: int,
) -> tf.data.Dataset:
    parts = [records(file, negatives=negatives) for file in files]
    if numbers is not None:
        # Zipped, not mapped: a function a file would take long to build.
        parts = [
            tf.data.Dataset.zip((part, tf.data.Dataset.from_tensors(numbers[file]).repeat()))
            for file, part in zip(files, parts, strict=True)
        ]
    return (
        concatenate(parts)
        .shuffle(_SHUFFLE_BUFFER, seed=seed, reshuffle_each_iteration=True)
        .repeat()
    )


def concatenate(datasets: Sequence[tf.data.Dataset]) -> tf.data.Dataset:
    """Returns one dataset of all, one after another."""
    return functools.reduce(tf.data.Dataset.concatenate, datasets)


def records(file: CorpusFile, *, negatives: int = 0) -> tf.data.Dataset:
    """Returns the records of a file in its order, serialized `tf.train.Example`s.

    Args:
      file: of any kind.
      negatives: the hard negatives to read of each line of a TSV file.
    """
    if file.format in (SHARD, TFRECORD):
        # `tf.data.TFRecordDataset` makes a function of each file: of a shard a language, that takes
        # longer than the training of a small model.
        records = tf.raw_ops.TFRecordDataset(
            filenames=file.path,
            compression_type="GZIP" if file.path.endswith(".gz") else "",
            buffer_size=_READ_BUFFER,
        )
        return tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))
    with_negatives = negatives if file.format == TSV else 0

    def serialized():
        if with_negatives:
            for _, *fields, wrong in textio.read_negatives(file.path, with_negatives):
                yield _serialize(file.kind, fields, wrong)
        else:
            for _, *fields in _read(file):
                yield _serialize(file.kind, fields)

    def generate():
        examples = serialized()
        try:
            while chunk := list(islice(examples, _RECORDS_PER_CALL)):
                yield chunk
        except InputError as error:
            _failures.append(error)
            raise

    chunks = tf.data.Dataset.from_generator(
        generate, output_signature=tf.TensorSpec([None], tf.string)
    )
    return chunks.unbatch()


def _read(file: CorpusFile) -> Iterator[tuple]:
    if file.format == MOSES:
        return textio.read_moses(file.english_path, file.path)
    return _LINE_READERS[file.format](file.path)


def _serialize(kind: str, fields: Sequence[str], negatives: Sequence[str] = ()) -> bytes:
    example = tf.train.Example()
    for name, text in zip(KINDS[kind].fields, fields, strict=True):
        example.features.feature[name].bytes_list.value.append(text.encode())
    for text in negatives:
        example.features.feature[_NEGATIVES].bytes_list.value.append(text.encode())
    return example.SerializeToString()
