"""Scores pairs by contrastive data selection and writes a TSV file, for people to label."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler, RunInference

from beam_pipelines.reading.find import find_files
from beam_pipelines.reading.readers import ReadCorpus, in_batches
from beam_pipelines.records import Batch, Pair, ScoredBatch, encode_record
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.shuffle import KeepSmallest, hash_of
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
from labse_tf.training.runs.run_dir import open_existing

_SCORE = "cds"
COLUMNS = ("score", "label", "language", "source", "target")


def run(
    run_dir: str,
    inputs: Sequence[str],
    out: str,
    *,
    sample: int | None = None,
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> None:
    """Writes the scores of the pairs in `inputs`, or of a sample of them, to the TSV file `out`.

    Raises InputError for a run dir or inputs that are missing or damaged, an `out` that exists, or
    a sample below 1; then nothing is written.
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
        moved = [file.moved(absolute) for file in files]
        job = ScoreCorpus(moved, absolute(run_dir), sample, folder)
        run_pipeline(job, [path for file in files for path in file.paths], engine)
        check_free_path(out, overwrite=overwrite)
        with create_file(out) as whole:
            whole.write(("\t".join(COLUMNS) + "\n").encode("utf-8"))
            for path in STORAGE.glob(join(glob.escape(folder), "*.tsv")):
                with open_file(path) as part:
                    shutil.copyfileobj(part, whole)


@beam.ptransform_fn
def ScoreCorpus(begin, files: Sequence[CorpusFile], run_dir: str, sample: int | None, folder: str):
    """Corpus files -> a file of lines of COLUMNS in `folder` for each batch of pairs."""
    # The filter job drops unsupported languages anyway, so nobody needs to label them.
    known = begin | ReadCorpus(files) | beam.Filter(lambda batch: is_code(batch.language))
    if sample is not None:
        # The pairs with the lowest hashes: a uniform sample that is the same on all runners.
        known = (
            known
            | "Hash"
            >> beam.Map(lambda one: [(hash_of(encode_record(p)), tuple(p)) for p in one.records])
            | "Sample" >> beam.CombineGlobally(KeepSmallest(sample))
            | "Batches" >> beam.FlatMap(lambda kept: in_batches(Pair(*pair) for _, pair in kept))
        )
    return known | score_pairs(run_dir, _SCORE) | beam.Map(_write_lines, folder)


def _write_lines(batch: ScoredBatch, folder: str) -> None:
    """Writes a file that is named by its pairs, so that a second try replaces it."""
    lines = []
    for pair, score in zip(batch.records, batch.scores[_SCORE], strict=True):
        # Records from shards and Parquet files may contain tabs and line breaks.
        source, target = (" ".join(side.split()) for side in (pair.source, pair.target))
        lines.append("\t".join((f"{score:.6f}", "", batch.language, source, target)) + "\n")
    name = hash_of(b"".join(map(encode_record, batch.records))).hex()
    write_file(join(folder, f"{batch.language}-{name}.tsv"), "".join(lines).encode("utf-8"))


def score_pairs(run_dir: str, name: str) -> beam.PTransform:
    """Returns the step `Batch` or `ScoredBatch` of pairs -> `ScoredBatch` with one more score.

    It is `cds_scores` of this run, called `name`. Pairs in languages not in the paper get none.
    """
    return RunInference(_TranslatorHandler(run_dir, name))


class _TranslatorHandler(ModelHandler):
    """Treats one of our batches as one example of RunInference: the scorer divides it by length."""

    def __init__(self, run_dir: str, name: str) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._run_dir, self._name = run_dir, name

    def load_model(self):
        # RunInference calls this in its DoFn's setup(), once per process.
        from labse_tf.systems.cds.scorer import TranslatorScorer

        with input_errors_marked():
            return TranslatorScorer(local_copy(self._run_dir))

    def run_inference(
        self, batch: Sequence[Batch | ScoredBatch], model, inference_args: dict | None = None
    ) -> Iterator[ScoredBatch]:
        from labse_tf.systems.cds.scorer import cds_scores

        for one in batch:
            scores = dict(one.scores) if isinstance(one, ScoredBatch) else {}
            if is_code(one.language):
                noisy, trusted = model.log_likelihoods(one.records).T
                scores[self._name] = cds_scores(noisy, trusted).tolist()
            yield ScoredBatch(one.language, one.records, scores)
