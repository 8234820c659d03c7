"""Scores pairs by contrastive data selection and writes a TSV file, for people to label."""

from __future__ import annotations

import collections
import glob
import shutil
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam

from beam_pipelines.filtering.unique_sides import plan_parts
from beam_pipelines.reading.find import find_files
from beam_pipelines.reading.readers import ReadCorpus, in_batches
from beam_pipelines.records.records import Pair, ScoredBatch, encode_record
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.shuffle import HASH_BYTES, GroupValues, KeepSmallest, hash_of
from beam_pipelines.runtime.storage import (
    STORAGE,
    absolute,
    check_free_path,
    create_file,
    join,
    local_copy,
    open_file,
    parts_folder,
    write_file,
)
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, CorpusFile
from labse_tf.files.outputs import check_apart
from labse_tf.languages import is_code
from labse_tf.systems.cds.score_step import ScoreCds
from labse_tf.training.runs.run_dir import open_existing

_SCORE = "cds"
COLUMNS = ("score", "label", "language", "source", "target")


class ScoreCorpus(beam.PTransform):
    """Corpus files -> `FOLDER/<lang>-?????.tsv`, lines of COLUMNS in the order of their hashes.

    Args:
      run_dir: of `labse corpus train-cds`.
      files: bitext.
      folder: where to write.
      shuffle_folder: see `shuffle`.
      parts: of each language; a worker holds one in memory. See `unique_sides.plan_parts`.
      sample: score only this many pairs; None scores all.
    """

    def __init__(
        self,
        run_dir: str,
        files: Sequence[CorpusFile],
        folder: str,
        shuffle_folder: str | None,
        parts: int,
        sample: int | None,
    ) -> None:
        super().__init__()
        self._run_dir = run_dir
        self._files = files
        self._folder = folder
        self._shuffle_folder = shuffle_folder
        self._parts = parts
        self._sample = sample

    def expand(self, begin):
        batches = (
            begin
            | "Read" >> ReadCorpus(self._files)
            # The filter job drops unsupported languages anyway, so nobody needs to label them.
            | "Known" >> beam.Filter(lambda batch: is_code(batch.language))
        )
        if self._sample is not None:
            batches = batches | "Sample" >> SamplePairs(self._sample)
        return (
            batches
            | "Score" >> ScoreCds(self._run_dir, _SCORE)
            | "Assign" >> beam.FlatMap(_assign, self._parts)
            | "Gather" >> GroupValues(self._shuffle_folder)
            | "Write" >> beam.Map(_write_part, self._folder)
        )


class SamplePairs(beam.PTransform):
    """PCollection of `Batch` -> batches of `size` different pairs, or of all if there are fewer.

    These are the pairs with the lowest hashes: a uniform sample that does not depend on the runner.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def expand(self, batches):
        return (
            batches
            | "Hash"
            >> beam.Map(lambda batch: [(_hash(pair), tuple(pair)) for pair in batch.records])
            | "Lowest" >> beam.CombineGlobally(KeepSmallest(self._size))
            | "Batches" >> beam.FlatMap(lambda kept: in_batches(Pair(*pair) for _, pair in kept))
        )


def run(
    run_dir: str,
    inputs: Sequence[str],
    out: str,
    *,
    sample: int | None = None,
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> None:
    """Writes the scores of the pairs in `inputs` to the file `out`.

    Args:
      run_dir: of `labse corpus train-cds`.
      inputs: files, folders or globs of bitext.
      out: the TSV file.
      sample: score only this many pairs; None scores all.
      overwrite: replace an existing `out`.
      beam_options: options for Beam, as strings; if empty, the direct runner is used.

    Raises:
      InputError: for a run dir or inputs that are missing or damaged, an `out` that exists, or a
        sample below 1. Then nothing is written.
    """
    if sample is not None and sample < 1:
        raise InputError(f"--sample is {sample}", remedy="give 1 or more")
    engine = Engine(beam_options)
    engine.check_paths([run_dir, *inputs, out])
    check_apart(out, [run_dir, *inputs], overwrite=overwrite)
    out = check_free_path(out, overwrite=overwrite)
    run_dir = STORAGE.resolve(run_dir)
    open_existing(local_copy(run_dir))
    files = find_files(inputs, kind=BITEXT)
    with parts_folder(out) as folder:
        job = ScoreCorpus(
            absolute(run_dir),
            [file.moved(absolute) for file in files],
            folder,
            engine.shuffle_folder(join(folder, "shuffle")),
            plan_parts(files),
            sample,
        )
        run_pipeline(job, [path for file in files for path in file.paths], engine)
        check_free_path(out, overwrite=overwrite)
        with create_file(out) as whole:
            whole.write(("\t".join(COLUMNS) + "\n").encode("utf-8"))
            for path in STORAGE.glob(join(glob.escape(folder), "*.tsv")):
                with open_file(path) as part:
                    shutil.copyfileobj(part, whole)


def _hash(pair: Pair) -> bytes:
    return hash_of(encode_record(pair))


def _assign(batch: ScoredBatch, parts: int) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    """Yields `((language, part), [hash and line])`; the parts in order have the order of hashes."""
    divided: dict[int, list[bytes]] = collections.defaultdict(list)
    for pair, score in zip(batch.records, batch.scores[_SCORE], strict=True):
        digest = _hash(pair)
        # Records from shards and Parquet files may contain tabs and line breaks.
        source, target = (" ".join(side.split()) for side in (pair.source, pair.target))
        line = "\t".join((f"{score:.6f}", "", batch.language, source, target)) + "\n"
        part = int.from_bytes(digest[:8], "big") * parts >> 64
        divided[part].append(digest + line.encode("utf-8"))
    for part, lines in divided.items():
        yield (batch.language, part), lines


def _write_part(element: tuple[tuple[str, int], Iterable[list[bytes]]], folder: str) -> None:
    (language, part), lists = element
    lines = sorted(line for list_ in lists for line in list_)
    content = b"".join(line[HASH_BYTES:] for line in lines)
    write_file(join(folder, f"{language}-{part:05}.tsv"), content)
