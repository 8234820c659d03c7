"""Vectors on disk: slices over shards, and files that are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from labse_tf.embedding.quantisation import QUANTISED, Int8, calibration_path, write_calibration
from labse_tf.errors import InputError
from labse_tf.retrieval.vectors import Selection, is_binary, open_vectors, read_bits


def unit(count, dim=4, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(params=[np.float32, np.float16])
def sharded(request, tmp_path):
    """Three shards, one of them empty, and the whole."""
    whole = unit(10).astype(request.param)
    folder = tmp_path / "vectors"
    folder.mkdir()
    for number, (start, end) in enumerate([(0, 4), (4, 4), (4, 10)]):
        np.save(folder / f"part-{number:05d}-of-00003.npy", whole[start:end])
    (folder / "report.json").write_text("{}")
    return folder, whole


def test_slices_and_rows_are_those_of_the_whole(sharded):
    folder, whole = sharded
    vectors = open_vectors(folder, dim=4)
    assert (vectors.shape, vectors.dtype, len(vectors)) == ((10, 4), whole.dtype, 10)
    for start, end in itertools.combinations_with_replacement(range(12), 2):
        assert vectors[start:end].dtype == np.float32
        np.testing.assert_array_equal(vectors[start:end], whole[start:end])
    rows = np.array([9, 0, 3, 4, 0])
    np.testing.assert_array_equal(vectors[rows], whole[rows])
    assert vectors[np.array([], np.int64)].shape == (0, 4)
    with pytest.raises(IndexError):
        vectors[np.array([10])]
    selection = Selection(vectors, np.array([1, 5, 9]))
    assert selection.shape == (3, 4)
    np.testing.assert_array_equal(selection[1:3], whole[[5, 9]])
    np.testing.assert_array_equal(selection[np.array([2, 0])], whole[[9, 1]])


@pytest.mark.parametrize("kind", QUANTISED.values())
def test_quantised_vectors_are_read_as_unit_vectors(tmp_path, kind):
    vectors = unit(20, dim=12)
    vectors[5] = 0
    calibration = kind.fit(vectors)
    path = tmp_path / "v.npy"
    np.save(path, calibration.quantise(vectors))
    write_calibration(path, calibration)
    found = open_vectors(path, dim=12, check=False)
    assert (found.shape, found.dtype) == ((20, 12), calibration.dtype)
    expected = calibration.dequantise(calibration.quantise(vectors))
    np.testing.assert_array_equal(found[:], expected)
    rows = np.array([7, 0, 19])
    np.testing.assert_array_equal(found[rows], expected[rows])
    # Nearer to its own vector than to any other.
    products = found[:] @ vectors.T
    assert (np.delete(products, 5, 0).argmax(1) == np.delete(np.arange(20), 5)).all()
    with pytest.raises(InputError, match="v.npy:6: the vector in row 6 is all zeros"):
        found.check()
    found.check(np.arange(20) != 5)
    selection = Selection(found, rows)
    assert is_binary(found) == is_binary(selection) == (calibration.kind == "binary")
    if is_binary(found):
        np.testing.assert_array_equal(read_bits(selection), np.load(path)[rows])


def test_calibrations_of_other_vectors_are_refused(tmp_path):
    path = tmp_path / "v.npy"
    for dtype in (np.uint8, np.int8):
        np.save(path, np.ones((3, 11), dtype))
        write_calibration(path, Int8.fit(unit(3, dim=12)))
        with pytest.raises(InputError, match=f"in 12 columns, but v.npy holds {dtype.__name__} in"):
            open_vectors(path)
    calibration_path(path).unlink()
    with pytest.raises(InputError, match="its calibration v.npy.calibration.json is missing"):
        open_vectors(path)


def test_arrays_and_files_that_are_no_vectors_are_refused(tmp_path):
    path = tmp_path / "v.npy"
    for array, message in (
        (unit(4) * [[1], [1], [1], [np.nan]], ":4: the vector in row 4 holds NaN or infinity"),
        (unit(4) * [[1], [1], [1], [np.inf]], ":4: the vector in row 4 holds NaN or infinity"),
        (unit(4) * [[1], [1], [1], [4.0]], ":4: the vector in row 4 has length 4, not 1"),
        (unit(4) * [[1], [1], [1], [0.0]], ":4: the vector in row 4 is all zeros"),
        (unit(6)[0], "holds float32 [4]"),
        (unit(6).astype(np.float64), "holds float64 [6, 4]"),
        (np.array([["a"]], object), "not a complete .npy array of numbers"),
        (unit(0), "holds no vectors"),
        (unit(6, 3), "dimension 3, where 4 is expected"),
        (np.asfortranarray(unit(6)), "C order"),
    ):
        if message.startswith(":"):
            array = array.astype(np.float32)
        np.save(path, array, allow_pickle=True)
        with pytest.raises(InputError) as error:
            open_vectors(path, dim=4)
        assert str(error.value).startswith(str(path)) and message in str(error.value)
    np.save(path, unit(100))
    whole = path.read_bytes()
    for content in (b"", b"text\n", whole[:50], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a complete .npy"):
            open_vectors(path)
    np.savez(tmp_path / "v.npz", a=unit(3))
    for name, message in (("v.npz", "not a .npy file"), ("none.npy", "no such file")):
        with pytest.raises(InputError, match=message):
            open_vectors(tmp_path / name)


def test_shards_that_are_not_one_whole_are_refused(sharded):
    folder, whole = sharded
    last = folder / "part-00002-of-00003.npy"
    other = np.float16 if whole.dtype == np.float32 else np.float32

    def refused(message):
        with pytest.raises(InputError, match=message):
            open_vectors(folder)

    np.save(folder / "part-00001-of-00002.npy", unit(3))
    refused("several jobs")
    (folder / "part-00001-of-00002.npy").unlink()
    np.save(last, unit(3).astype(other))
    refused(f"{last.name}: holds float.., but part-00000")
    np.save(last, unit(3, 5))
    refused(f"{last.name}: holds vectors of dimension 5")
    (folder / "part-00001-of-00003.npy").unlink()
    refused("part-00001-of-00003.npy is missing")
    for path in folder.glob("*.npy"):
        path.unlink()
    refused("holds no part-")
