"""Neighbours found with quantised vectors and compared by exact ones, up to `labse mine`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_files import write_lines

from labse_tf.embedding.quantisation import QUANTISED, calibration_path, write_calibration
from labse_tf.retrieval import neighbours, search
from labse_tf.retrieval.neighbours import Neighbours, nearest, nearest_both, rescore
from labse_tf.retrieval.search import search_both
from labse_tf.retrieval.vectors import open_vectors

COUNT, DIM = 60, 32


def test_rescoring_by_hand():
    """The candidates 2 and 0 are equally near, so the lower comes first; 3 is no candidate."""
    queries = np.array([[1, 0]], np.float32)
    candidates = np.array([[0.6, 0.8], [0, 1], [0.6, -0.8], [1, 0]], np.float32)
    found = Neighbours(np.array([[9, 8, 7]], np.float32), np.array([[1, 2, 0]]))
    best = rescore(found.indices, queries, candidates, 2)
    np.testing.assert_array_equal(best.indices, [[0, 2]])
    np.testing.assert_array_equal(best.similarities, np.array([[0.6, 0.6]], np.float32))
    assert rescore(found.indices, queries, candidates, 9).indices.tolist() == [[0, 2, 1]]


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 6),
)
def test_with_all_as_candidates_it_is_the_exact_search(generator, n, m, k):
    own, others = (generator.integers(-2, 3, (count, 3)).astype(np.float32) for count in (n, m))
    order = generator.permuted(np.tile(np.arange(m), (n, 1)), axis=1)
    found = rescore(order, own, others, k)
    expected = nearest(own, others, k)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.similarities, expected.similarities)


def write_sides(folder) -> dict[str, list]:
    """The same vectors of two sides, in files of each type; targets are sources plus noise."""
    generator = np.random.default_rng(0)
    source = generator.standard_normal((COUNT, DIM)) + 0.3
    target = generator.permutation(source) + 0.8 * generator.standard_normal((COUNT, DIM))
    files: dict[str, list] = {}
    for name, side in (("source", source), ("target", target)):
        side = (side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32)
        for dtype in ("float32", "float16", *QUANTISED):
            path = folder / f"{name}.{dtype}.npy"
            if dtype in QUANTISED:
                calibration = QUANTISED[dtype].fit(side)
                write_calibration(path, calibration)
                np.save(path, calibration.quantise(side))
            else:
                np.save(path, side.astype(dtype))
            files.setdefault(dtype, []).append(path)
    return files


@pytest.fixture
def files(tmp_path):
    return write_sides(tmp_path)


@pytest.mark.parametrize("index", ["exact", "approximate"])
@pytest.mark.parametrize("dtype", list(QUANTISED))
@pytest.mark.parametrize("exact", ["float32", "float16", "int8"])
def test_a_search_is_rescored_in_both_directions(files, tmp_path, dtype, exact, index):
    coarse, fine = ([open_vectors(path) for path in files[name]] for name in (dtype, exact))
    folder = tmp_path / "work"
    folder.mkdir()
    options = {"index": index, "recall": 1.0, "rescored_by": fine}
    *found, facts = search_both(*coarse, 3, folder, **options, candidates=COUNT)
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


def test_vectors_that_do_not_match_are_refused(files, tmp_path):
    coarse, fine = ([open_vectors(path) for path in files[name]] for name in ("int8", "float32"))
    with pytest.raises(ValueError, match=r"60 and 60 vectors, rescored by \[60, 59\]"):
        search_both(
            *coarse, 2, tmp_path, index="exact", recall=1.0, rescored_by=[fine[0], fine[1][:59]]
        )


# The command.


@pytest.fixture
def mine(files, tmp_path, labse):
    """Runs `labse mine` on a text of numbers; further arguments are those of the command."""
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
    # Of 60 sources in 3 blocks and of 25 targets.
    assert starts == [0, 85]
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_input_that_cannot_be_rescored_by_is_refused(files, tmp_path, mine):
    def refused(*arguments, embeddings=files["binary"]):
        given = ["--embeddings", *embeddings] if embeddings else []
        status, _, error = mine("out.tsv", *given, *arguments)
        assert status == 2 and not (tmp_path / "out.tsv").exists()
        return error

    exact = files["float32"]
    assert "--candidates without --rescore; add the vectors" in refused("--candidates", 9)
    assert "--candidates is 3; give as many as --neighbours (4) or more" in refused(
        "--rescore", *exact, "--candidates", 3
    )
    assert "target.binary.npy: holds binary vectors, which are not exact; rescore by" in refused(
        "--rescore", exact[0], files["binary"][1]
    )
    rows = np.load(exact[1])
    np.save(tmp_path / "few.npy", rows[1:])
    assert "few.npy: has 59 rows, but " in refused("--rescore", exact[0], tmp_path / "few.npy")
    np.save(tmp_path / "narrow.npy", rows[:, 1:])
    assert "narrow.npy: holds vectors of dimension 31, where 32 is expected" in refused(
        "--rescore", exact[0], tmp_path / "narrow.npy"
    )
    rows[7] = 0
    np.save(tmp_path / "zero.npy", rows)
    assert "zero.npy:8: the vector in row 8 is all zeros" in refused(
        "--rescore", exact[0], tmp_path / "zero.npy"
    )
    assert "none.npy: no such file" in refused("--rescore", exact[0], tmp_path / "none.npy")
    calibration_path(files["binary"][0]).unlink()
    assert "source.binary.npy: holds quantised vectors, but its calibration" in refused(
        "--rescore", *exact
    )


def test_rescoring_needs_vectors_to_search_with(files, tmp_path, labse):
    path = write_lines(tmp_path / "a.txt", ["x"])
    status, _, error = labse(
        "mine", "no:model", path, path, "--rescore", *files["int8"], "--out", tmp_path / "out.tsv"
    )
    assert status == 2 and "--rescore without --embeddings; add the vectors to search" in error
