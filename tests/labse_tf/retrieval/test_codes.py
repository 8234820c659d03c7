"""Products of bytes: never further off than they say, and no neighbour is lost by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.retrieval import codes, neighbours
from labse_tf.retrieval.neighbours import Neighbours, nearest, nearest_both


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def some_vectors(dim: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(dim)
    if kind == "one coordinate":
        return np.eye(dim, dtype=np.float32)
    if kind == "an axis of the rotation":
        return np.ascontiguousarray(codes.Coder(dim)._rotation.T)
    if kind == "longer":
        return rng.normal(size=(300, dim)).astype(np.float32)
    return unit(rng.normal(size=(300, dim)) * np.arange(1, dim + 1) ** -0.7)


@pytest.mark.parametrize("dim", [1, 5, 64, 131])
@pytest.mark.parametrize(
    "kind", ["decaying", "one coordinate", "an axis of the rotation", "longer"]
)
def test_products_are_within_the_bounds(dim, kind):
    rows, others = some_vectors(dim, kind), some_vectors(dim, "decaying")
    coder = codes.Coder(dim)
    for one, other in ((rows, others), (others, rows)):
        sources, targets = coder.code_sources(one), coder.code_targets(other)
        assert (sources.numbers.dtype, targets.numbers.dtype) == (np.uint8, np.int8)
        found = codes.products(sources.numbers, targets.numbers)
        integers = (sources.numbers.astype(int) - 128) @ targets.numbers.astype(int).T
        np.testing.assert_array_equal(found, integers)
        exact = one.astype(float) @ other.astype(float).T
        apart = np.abs(found * (sources.step * targets.step) - exact)
        by_source, by_target = codes.bounds(sources, targets)
        assert (apart <= by_source[:, np.newaxis] + 1e-5).all()
        assert (apart <= by_target + 1e-5).all()


def test_bounds_are_narrow_where_vectors_are_not_odd():
    rows = some_vectors(512, "decaying")
    coder = codes.Coder(512)
    by_source, _ = codes.bounds(coder.code_sources(rows), coder.code_targets(rows))
    assert by_source.max() < 0.05


@pytest.mark.parametrize("kind", ["decaying", "one coordinate"])
def test_likely_bounds_hold_for_as_good_as_all(kind):
    """Of 90,000 products, at six standard deviations; and they are far narrower."""
    rows, others = some_vectors(512, kind)[:300], some_vectors(512, "decaying")
    coder = codes.Coder(512)
    sources, targets = coder.code_sources(rows), coder.code_targets(others)
    found = codes.products(sources.numbers, targets.numbers) * (sources.step * targets.step)
    apart = np.abs(found - rows.astype(float) @ others.astype(float).T)
    by_source, by_target = codes.likely_bounds(sources, targets)
    assert (apart <= by_source[:, np.newaxis] + 1e-5).all()
    assert (apart <= by_target + 1e-5).all()
    # Not so wide that anything would do: two standard deviations do not hold 99 in 100.
    assert (apart > by_source[:, np.newaxis] / 3).mean() > 0.005
    assert (by_source < 0.3 * codes.bounds(sources, targets)[0]).all()


def test_vectors_are_coded_alike_in_blocks_and_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(codes, "_ROWS_PER_BLOCK", 7)
    rows = some_vectors(64, "longer")
    coder = codes.Coder(64)
    for code in (coder.code_sources, coder.code_targets):
        whole = code(rows)
        with neighbours.threads() as pool:
            for file in (None, tmp_path / "codes.npy"):
                found = codes.code_all(rows, code, pool, file=file)
                np.testing.assert_array_equal(found.numbers, whole.numbers)
                np.testing.assert_allclose(found.errors, whole.errors, atol=1e-6)
                assert (found.step, found.longest) == (whole.step, whole.longest)
                some = found[np.array([5, 250])]
                np.testing.assert_array_equal(some.numbers, whole.numbers[[5, 250]])
                assert some.errors.shape == (2,)


@pytest.fixture
def always_coded(monkeypatch):
    monkeypatch.setattr(neighbours, "FEWEST_CODED", 1)
    monkeypatch.setattr(neighbours, "ROWS_PER_BLOCK", 64)


def search(sources, targets, k, rows=40, columns=50):
    forward = Neighbours.none_yet(len(sources), min(k, len(targets)))
    backward = Neighbours.none_yet(len(targets), min(k, len(sources)))
    for _ in neighbours.search_blocks(
        sources, targets, forward, backward, rows=rows, columns=columns
    ):
        pass
    return forward, backward


def reference(sources, targets, k):
    """By sorting all products; equal ones by place."""
    products = np.array([[np.dot(one, other) for other in targets] for one in sources], np.float32)
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(products, order, axis=1), order


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([3, 17, 48]))
def test_no_neighbour_is_lost(seed, k, dim):
    rng = np.random.default_rng(seed)
    sides = [unit(rng.normal(size=(count, dim)) + 0.3) for count in (130, 170)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "FEWEST_CODED", 1)
        forward, backward = search(*sides, k)
    for found, (own, others) in ((forward, sides), (backward, sides[::-1])):
        values, _ = reference(own, others, k)
        np.testing.assert_allclose(found.similarities, values, atol=1e-6)
        paired = np.einsum("nd,nkd->nk", own, others[found.indices])
        np.testing.assert_allclose(paired, found.similarities, atol=1e-6)


def test_equal_vectors_in_several_blocks_are_in_order(always_coded):
    rng = np.random.default_rng(3)
    distinct = unit(rng.normal(size=(7, 24)))
    targets = distinct[rng.integers(0, 7, 400)]
    forward, backward = search(distinct, targets, 5)
    for row, vector in enumerate(distinct):
        places = np.flatnonzero((targets == vector).all(axis=1))[:5]
        np.testing.assert_array_equal(forward.indices[row], places)
    assert (backward.similarities[:, 0] > 0.9999).all()


def test_codes_and_float32_give_the_same(always_coded, monkeypatch):
    rng = np.random.default_rng(5)
    sources, targets = (unit(rng.normal(size=(n, 96))) for n in (700, 5000))
    coded = nearest_both(sources, targets, 4), nearest(targets, sources, 4)
    monkeypatch.setattr(neighbours, "FEWEST_CODED", 10**9)
    whole = nearest_both(sources, targets, 4), nearest(targets, sources, 4)
    for one, other in zip((*coded[0], coded[1]), (*whole[0], whole[1]), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.similarities, other.similarities)


def test_most_pairs_are_left_out_by_their_codes(always_coded, monkeypatch):
    """Else the search would only be slower for them."""
    compared = []
    exactly = neighbours.exact_products
    monkeypatch.setattr(
        neighbours,
        "exact_products",
        lambda *args: (compared.append(len(args[2])), exactly(*args))[1],
    )
    rng = np.random.default_rng(6)
    sides = [unit(rng.normal(size=(4000, 128))) for _ in range(2)]
    search(*sides, 4, rows=1000, columns=500)
    assert sum(compared[-10:]) < 0.1 * 10 * 1000 * 500
