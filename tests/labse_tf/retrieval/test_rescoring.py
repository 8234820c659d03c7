"""Neighbours found with quantised vectors and compared by exact ones, up to `labse mine`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from text_files import write_lines

from labse_tf.embedding.quantisation import QUANTISED, calibration_path, write_calibration
from labse_tf.retrieval import neighbours, search
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
            path = tmp_path / f"{name}.{dtype}.npy"
            if dtype in QUANTISED:
                calibration = QUANTISED[dtype].fit(side)
                write_calibration(path, calibration)
                np.save(path, calibration.quantise(side))
            else:
                np.save(path, side.astype(dtype))
            files.setdefault(dtype, []).append(path)
    return files


@pytest.mark.parametrize(
    ("dtype", "exact", "index"),
    [
        ("int8", "float32", "exact"),
        ("int8", "float16", "approximate"),
        ("binary", "int8", "exact"),
        ("binary", "float32", "approximate"),
    ],
)
def test_a_search_is_rescored_in_both_directions(files, tmp_path, dtype, exact, index):
    coarse, fine = ([open_vectors(path) for path in files[name]] for name in (dtype, exact))
    options = {"index": index, "recall": 1.0, "rescored_by": fine, "candidates": COUNT}
    *found, facts = search_both(*coarse, 3, tmp_path, **options)
    assert facts["candidates"] == COUNT
    for one, other in zip(found, nearest_both(*fine, 3), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.similarities, other.similarities)


def test_the_number_of_candidates_depends_on_the_vectors(files, tmp_path):
    fine = [open_vectors(path) for path in files["float32"]]
    expected = nearest_both(*fine, 2)
    for dtype, count in (("int8", 4), ("binary", 32)):
        folder = tmp_path / dtype
        folder.mkdir()
        coarse = [open_vectors(path) for path in files[dtype]]
        *found, facts = search_both(*coarse, 2, folder, index="exact", recall=1.0, rescored_by=fine)
        assert facts == {"index": "exact", "candidates": count}
        for one, other, own in zip(found, expected, fine, strict=True):
            assert one.indices.shape == (len(own), 2)
            # These few candidates hold nearly all neighbours.
            assert (one.indices == other.indices).mean() > 0.9


# The command.


@pytest.fixture
def mine(files, tmp_path, labse):
    """Runs `labse mine` on a text of numbers; further arguments are the command's."""
    texts = [
        write_lines(tmp_path / f"{side}.txt", [f"{side} {i}" for i in range(COUNT)])
        for side in ("source", "target")
    ]

    def run(out, *arguments):
        return labse("mine", *texts, "--out", tmp_path / out, *arguments)

    return run


def test_pairs_are_those_of_the_exact_vectors(files, tmp_path, mine):
    assert mine("exact.tsv", "--embeddings", *files["float32"])[0] == 0
    for dtype in QUANTISED:
        command = ["--embeddings", *files[dtype], "--rescore", *files["float32"]]
        report = tmp_path / f"{dtype}.json"
        status, _, error = mine(f"{dtype}.tsv", *command, "--candidates", COUNT, "--report", report)
        assert status == 0, error
        exact = (tmp_path / "exact.tsv").read_bytes()
        assert (tmp_path / f"{dtype}.tsv").read_bytes() == exact
        facts = json.loads(report.read_text())
        assert facts["search"]["candidates"] == facts["options"]["candidates"] == COUNT


def test_a_stop_while_searching_bits_goes_on(files, tmp_path, mine, monkeypatch):
    command = ["--embeddings", *files["binary"], "--rescore", *files["int8"]]
    assert mine("whole.tsv", *command)[0] == 0
    monkeypatch.setattr(search, "_SECONDS_BETWEEN_SAVES", -1)
    monkeypatch.setattr(neighbours, "ROWS_PER_BLOCK", 25)
    real, starts = neighbours.search_bits, []

    def stopping(*arguments, start, **options):
        starts.append(start)
        for count, end in enumerate(real(*arguments, start=start, **options)):
            if count == 4 and len(starts) == 1:
                raise KeyboardInterrupt
            yield end

    monkeypatch.setattr(search, "search_bits", stopping)
    assert mine("pairs.tsv", *command)[0] == 130
    others = ["--embeddings", *files["binary"], "--rescore", *files["float32"]]
    status, _, error = mine("pairs.tsv", *others)
    assert status == 2 and "with other settings (rescore)" in error
    status, _, error = mine("pairs.tsv", *command, "--candidates", 50)
    assert status == 2 and "with other settings (candidates)" in error
    assert mine("pairs.tsv", *command)[0] == 0
    # After 60 sources in 3 blocks and 25 targets.
    assert starts == [0, 85]
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_input_that_cannot_be_rescored_by_is_refused(files, tmp_path, mine, labse):
    source, target = files["float32"]

    def assert_refused(problem, *arguments):
        status, _, error = mine("out.tsv", "--embeddings", *files["binary"], *arguments)
        assert status == 2 and problem in error and not (tmp_path / "out.tsv").exists()

    assert_refused("--candidates without --rescore", "--candidates", 9)
    status, _, error = labse("mine", "m", "a", "b", "--out", "out", "--rescore", *files["int8"])
    assert status == 2 and "--rescore without --embeddings" in error
    few = ("--rescore", source, target, "--candidates", 3)
    assert_refused("--candidates is 3; give as many as --neighbours (4) or more", *few)
    bad = np.load(target)
    bad[7] = 0
    arrays = {"few": np.load(target)[1:], "narrow": np.load(target)[:, 1:], "zero": bad}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    for name, problem in (
        (files["binary"][1].name, "holds binary vectors, which are not exact"),
        ("few.npy", "has 59 rows, but "),
        ("narrow.npy", "holds vectors of dimension 31, where 32 is expected"),
        ("zero.npy:8", "the vector in row 8 is all zeros"),
        ("none.npy", "no such file"),
    ):
        path = tmp_path / name.partition(":")[0]
        assert_refused(f"{name}: {problem}", "--rescore", source, path)
    calibration_path(files["binary"][0]).unlink()
    problem = "source.binary.npy: holds quantised vectors, but its calibration"
    assert_refused(problem, "--rescore", source, target)
