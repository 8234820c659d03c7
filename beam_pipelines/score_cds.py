"""Scores pairs by contrastive data selection and writes a TSV file, for people to label."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.io.textio import WriteToText

from beam_pipelines.reading.readers import ReadCorpus, in_batches
from beam_pipelines.records.records import Pair, ScoredBatch, encode_record
from beam_pipelines.runtime.runners import run_pipeline
from beam_pipelines.text.cds_scores import ScoreCds
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, CorpusFile, find_corpus_files
from labse_tf.files.outputs import check_free, whole_file
from labse_tf.languages import LANGUAGES
from labse_tf.training.runs.run_dir import open_existing

_SCORE = "cds"
COLUMNS = ("score", "label", "language", "source", "target")


class ScoreCorpus(beam.PTransform):
    """Corpus files -> a TSV file of COLUMNS, with a header."""

    def __init__(
        self, run_dir: str, files: Sequence[CorpusFile], out: str, sample: int | None
    ) -> None:
        super().__init__()
        self._run_dir = run_dir
        self._files = files
        self._out = out
        self._sample = sample

    def expand(self, begin):
        batches = (
            begin
            | "Read" >> ReadCorpus(self._files)
            # The filter job drops unsupported languages anyway, so nobody needs to label them.
            | "Known" >> beam.Filter(lambda batch: batch.language in LANGUAGES)
        )
        if self._sample is not None:
            batches = batches | "Sample" >> SamplePairs(self._sample)
        return (
            batches
            | "Score" >> ScoreCds(self._run_dir, _SCORE)
            | "Format" >> beam.FlatMap(_lines)
            | "Write"
            >> WriteToText(
                self._out, num_shards=1, shard_name_template="", header="\t".join(COLUMNS)
            )
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
            | "Pairs" >> beam.FlatMap(lambda batch: [tuple(pair) for pair in batch.records])
            | "Distinct" >> beam.Distinct()
            | "Lowest" >> beam.combiners.Top.Smallest(self._size, key=_hash)
            | "Batches" >> beam.FlatMap(lambda pairs: in_batches(Pair(*pair) for pair in pairs))
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
    out = check_free(out, overwrite=overwrite)
    path = str(open_existing(run_dir).path.absolute())
    files = find_corpus_files(inputs, kind=BITEXT)
    with whole_file(out, overwrite=overwrite) as partial:
        job = ScoreCorpus(path, files, str(partial.absolute()), sample)
        run_pipeline(job, [path for file in files for path in file.paths], beam_options)


def _hash(pair: tuple[str, str, str]) -> bytes:
    return hashlib.blake2b(encode_record(Pair(*pair)), digest_size=16).digest()


def _lines(batch: ScoredBatch) -> Iterator[str]:
    for pair, score in zip(batch.records, batch.scores[_SCORE], strict=True):
        # Records from shards and Parquet files may contain tabs and line breaks.
        source, target = (" ".join(side.split()) for side in (pair.source, pair.target))
        yield "\t".join((f"{score:.6f}", "", batch.language, source, target))
