"""Neighbours found with quantised vectors and compared by exact ones, up to `labse mine`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from text_files import write_lines

from labse_tf.embedding.quantisation import QUANTISED, write_calibration
from labse_tf.retrieval.neighbours import nearest_both
from labse_tf.retrieval.search import search_both
from labse_tf.retrieval.vectors import open_vectors

COUNT, DIM = 60, 32


@pytest.fixture
def files(tmp_path) -> dict[str, list]:
    """The same vectors of two sides, in files of each type; targets are sources plus noise."""
    generator = np.random.default_rng(0)
    source = generator.standard_normal((COUNT, DIM)) + 0.3
    target = generator.permutation(source) + 0.8 * generator.standard_normal((COUNT, DIM))
    files: dict[str, list] = {}
    for name, side in (("source", source), ("target", target)):
        side = (side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32)
        for dtype in ("float32", "float16", *QUANTISED):
            path, rows = tmp_path / f"{name}.{dtype}.npy", side
            if dtype in QUANTISED:
                calibration = QUANTISED[dtype].fit(side)
                write_calibration(path, calibration)
                rows = calibration.quantise(side)
            np.save(path, rows.astype(rows.dtype if dtype in QUANTISED else dtype))
            files.setdefault(dtype, []).append(path)
    return files


@pytest.mark.parametrize(
    ("dtype", "exact", "index", "k"),
    [
        ("int8", "float16", "approximate", 30),
        ("binary", "int8", "exact", 4),
        ("binary", "float32", "approximate", 4),
    ],
)
def test_a_search_is_rescored_in_both_directions(files, tmp_path, dtype, exact, index, k):
    """All are candidates: 2 or 16 times the neighbours."""
    coarse, fine = ([open_vectors(path) for path in files[name]] for name in (dtype, exact))
    *found, facts = search_both(*coarse, k, tmp_path, index=index, recall=1.0, rescored_by=fine)
    assert facts["candidates"] in (60, 64)
    for one, other in zip(found, nearest_both(*fine, k), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.similarities, other.similarities)


@pytest.fixture
def command(files, tmp_path):
    texts = [write_lines(tmp_path / side, map(str, range(COUNT))) for side in ("a.txt", "b.txt")]
    return "mine", *texts, "--out", tmp_path / "out.tsv"


def test_pairs_are_those_of_the_exact_vectors(files, tmp_path, command, succeeds):
    succeeds(*command, "--embeddings", *files["float32"])
    exact, report = (tmp_path / "out.tsv").read_bytes(), tmp_path / "report.json"
    for dtype, count in (("int8", 8), ("binary", 64)):
        options = ["--embeddings", *files[dtype], "--rescore", *files["float32"], "--overwrite"]
        succeeds(*command, *options, "--report", report)
        assert (tmp_path / "out.tsv").read_bytes() == exact
        assert json.loads(report.read_text())["search"] == {"index": "exact", "candidates": count}


def test_input_that_cannot_be_rescored_by_is_refused(files, tmp_path, command, refused):
    source, target = files["float32"]
    whole = np.load(target)
    zero = whole * (np.arange(COUNT) != 7)[:, np.newaxis]
    for name, array in (("few", whole[1:]), ("narrow", whole[:, 1:]), ("zero", zero)):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))

    def by(name):
        return ("--rescore", source, tmp_path / name)

    for arguments, problem in (
        (by(files["binary"][1].name), "target.binary.npy: holds binary vectors"),
        (by("few.npy"), "few.npy: has 59 rows, but "),
        (by("narrow.npy"), "narrow.npy: holds vectors of dimension 31, where 32 is expected"),
        (by("zero.npy"), "zero.npy:8: the vector in row 8 is all zeros"),
        (by("none.npy"), "none.npy: no such file"),
    ):
        refused(problem, *command, "--embeddings", *files["binary"], *arguments)
        assert not (tmp_path / "out.tsv").exists()
    without = ("mine", "m", "a", "b", "--out", "out", "--rescore", *files["int8"])
    refused("--rescore without --embeddings", *without)
