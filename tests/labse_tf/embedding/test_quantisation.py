"""Quantised vectors: values by hand, bounds of the error, calibrations that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from labse_tf.embedding.quantisation import (
    Binary,
    Int8,
    calibration_path,
    read_calibration,
)
from labse_tf.errors import InputError

finite = st.floats(-1, 1, width=32)
matrices = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=20), elements=finite)


def test_int8_by_hand():
    sample = np.array([[0.254, -0.5, 0], [-0.1, 0.25, 0]], np.float32)
    calibration = Int8.fit(sample)
    # The largest is 127 steps; a dimension without values may hold up to 1.
    np.testing.assert_allclose(calibration.scales, [0.002, 0.5 / 127, 1 / 127], rtol=1e-6)
    rows = calibration.quantise(np.array([[0.254, 0.25, 0.5], [0.0029, -2, 0]], np.float32))
    assert rows.dtype == np.int8
    # -2 is beyond the sample.
    np.testing.assert_array_equal(rows, [[127, 64, 64], [1, -127, 0]])
    found = calibration.dequantise(rows)
    whole = np.array([[0.254, 64 * 0.5 / 127, 64 / 127], [0.002, -0.5, 0]])
    np.testing.assert_allclose(
        found, whole / np.linalg.norm(whole, axis=1, keepdims=True), rtol=1e-5
    )
    assert found.dtype == np.float32


def test_binary_by_hand():
    """64 rows of the same values are half of a sample with 64 rows of zeros; few say little."""
    row = np.array([[1, -1, 0.5, 0, 0, 0, 0, 0, 0.5]], np.float32)
    calibration = Binary.fit(np.tile(row, (64, 1)))
    np.testing.assert_array_equal(calibration.thresholds, row[0] / 2)
    np.testing.assert_allclose(Binary.fit(row).thresholds, row[0] / 65, rtol=1e-6)
    vectors = [[0.6, -0.6, 0.2, 0.1, -0.1, 0, 0, 1, 0.2], [-1, -1, -1, -1, -1, -1, -1, -0.1, -1]]
    rows = calibration.quantise(np.array(vectors, np.float32))
    # Nothing of the second is above its threshold: the nearest gets the bit.
    np.testing.assert_array_equal(rows, [[0b10010001, 0], [0b00000001, 0]])
    bits = np.array([[1, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0]])
    np.testing.assert_allclose(calibration.dequantise(rows), (2 * bits - 1) / 3, rtol=1e-6)


@settings(max_examples=40)
@given(matrices)
def test_int8_is_off_by_half_a_step_at_most(vectors):
    calibration = Int8.fit(vectors)
    rows = calibration.quantise(vectors)
    assert np.abs(rows.astype(int)).max() <= 127
    errors = np.abs(rows * calibration.scales.astype(np.float64) - vectors)
    assert (errors <= calibration.scales * (0.5 + 1e-4)).all()


@pytest.mark.parametrize("kind", [Int8, Binary])
@settings(max_examples=40)
@given(vectors=matrices)
def test_vectors_are_read_with_unit_length_or_as_zeros(kind, vectors):
    # As an encoder returns them: no number is so small that its square is 0.
    vectors = np.where(np.abs(vectors) < 1e-3, 0, vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    calibration = kind.fit(vectors)
    found = np.linalg.norm(calibration.dequantise(calibration.quantise(vectors)), axis=1)
    np.testing.assert_allclose(found, np.where(lengths[:, 0] == 0, 0, 1), atol=1e-5)


def test_what_is_no_calibration_is_refused(tmp_path):
    path = calibration_path(tmp_path / "v.npy")
    for content in (
        *("", "[]", "{}", b"\xff"),
        '{"kind": "int4", "dim": 1, "scales": [1]}',
        '{"kind": "int8", "dim": 1, "thresholds": [1]}',
        '{"kind": "int8", "dim": 2, "scales": [1]}',
        '{"kind": "int8", "dim": 1, "scales": [0]}',
        '{"kind": "int8", "dim": 1, "scales": ["one"]}',
        '{"kind": ["int8"], "dim": 1, "scales": [1]}',
        '{"kind": "binary", "dim": 1, "thresholds": [null]}',
        '{"kind": "binary", "dim": 1, "thresholds": [[0.5]]}',
        '{"kind": "binary", "dim": 0, "thresholds": []}',
    ):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputError, match="is not a calibration") as error:
            read_calibration(tmp_path / "v.npy")
        assert error.value.path == str(path)
    path.unlink()
    with pytest.raises(InputError, match="v.npy: .* its calibration v.npy.calibration.json is"):
        read_calibration(tmp_path / "v.npy")
