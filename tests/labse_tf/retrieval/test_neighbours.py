"""Exact neighbours: against a full sort, with ties, in blocks, by bytes, by bits, rescored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.embedding.quantisation import Binary
from labse_tf.retrieval import codes, neighbours
from labse_tf.retrieval.neighbours import Neighbours, Search, nearest, search_bits, search_blocks

generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def sorted_whole(queries, candidates, k):
    """The definition: everything sorted by product, then by place."""
    products = np.asarray(queries, np.float64) @ np.asarray(candidates, np.float64).T
    places = np.broadcast_to(np.arange(len(candidates)), products.shape)
    order = np.lexsort((places, -products), axis=1)[:, :k]
    return Neighbours(np.take_along_axis(products, order, axis=1), order)


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.similarities, expected.similarities)
    assert (found.similarities.dtype, found.indices.dtype) == (np.float32, np.int64)


def assert_sorted(found, sides, k):
    for one, (own, others) in zip(found, (sides, sides[::-1]), strict=True):
        assert_equal(one, sorted_whole(own, others, k))


def search(sources, targets, k, run=search_blocks, **options):
    found = Search(sources, targets, k)
    list(run(found, **options))
    return found.forward, found.backward


SIZES = st.integers(1, 90)


@settings(max_examples=40)
@given(generators, SIZES, SIZES, st.integers(1, 7), st.integers(1, 40), st.integers(1, 100))
def test_blocks_of_any_size_find_what_a_sort_finds(generator, n, m, k, rows, columns):
    # Small integers: their products are exact, and many are equal.
    sides = [generator.integers(-2, 3, (count, 3)).astype(np.float32) for count in (n, m)]
    assert_sorted(search(*sides, k, rows=rows, columns=columns), sides, k)


@pytest.mark.parametrize(
    ("k", "dtype"), [(1, np.float32), (4, np.float16), (16, np.float32), (300, np.float32)]
)
def test_wide_blocks_find_what_a_sort_finds(k, dtype):
    generator = np.random.default_rng(k)
    # 1,100 columns: groups of several, and a rest that fills no group.
    sides = [generator.integers(-99, 99, (n, 8)).astype(dtype) for n in (257, 1100)]
    assert_sorted(neighbours.nearest_both(*sides, k), sides, k)


@pytest.mark.parametrize("count", [3, 70, 5000])
def test_equal_vectors_are_equally_near_wherever_they_are(count):
    """768 real dimensions: products are rounded, and all the same."""
    generator = np.random.default_rng(1)
    target, source = generator.standard_normal((2, 1, 768), np.float32)
    found, _ = search(np.repeat(source, 5, 0), np.repeat(target, count, 0), 3, columns=4097)
    np.testing.assert_array_equal(found.indices, np.tile([0, 1, 2], (5, 1)))
    assert len(np.unique(found.similarities)) == 1


@pytest.mark.parametrize("blocks", [0, 2, 4])
@pytest.mark.parametrize("by_bits", [False, True])
def test_a_search_resumes_after_any_block(by_bits, blocks, monkeypatch):
    generator = np.random.default_rng(2)
    sides = [generator.integers(0, 256, (n, 3), np.uint8) for n in (10, 7)]
    run, options, steps = search_bits, {"dim": 24}, [4, 8, 10, 14, 17]
    if not by_bits:
        sides = [side.astype(np.float32) for side in sides]
        run, options, steps = search_blocks, {"rows": 2}, [2, 4, 6, 8, 10]
    whole = search(*sides, 2, run, **options)
    monkeypatch.setattr(neighbours, "ROWS_PER_BLOCK", 4)
    found = Search(*sides, 2)
    done = list(itertools.islice(run(found, **options), blocks))
    assert done + list(run(found, start=done[-1] if done else 0, **options)) == steps
    for one, other in zip((found.forward, found.backward), whole, strict=True):
        assert_equal(one, other)


def test_searches_that_make_no_sense_are_refused():
    for shape, k, message in (
        ((2, 4), 1, "dimensions differ: 3 and 4"),
        ((0, 3), 1, "no candidates"),
        ((2, 3), 0, "k is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            nearest(np.ones((2, 3)), np.ones(shape), k)


# Bytes: products are never further off than their bounds, and no neighbour is lost.


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def some_vectors(dim: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(dim)
    if kind == "one coordinate":
        return np.eye(dim, dtype=np.float32)
    if kind == "axis of the rotation":
        return np.ascontiguousarray(codes.Coder(dim)._rotation.T)
    if kind == "longer":
        return rng.normal(size=(300, dim)).astype(np.float32)
    return unit(rng.normal(size=(300, dim)) * np.arange(1, dim + 1) ** -0.7)


@pytest.mark.parametrize("dim", [1, 5, 131])
@pytest.mark.parametrize("kind", ["decaying", "one coordinate", "axis of the rotation", "longer"])
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
        assert (apart <= np.minimum(by_source[:, np.newaxis], by_target) + 1e-5).all()


@pytest.mark.parametrize("kind", ["decaying", "one coordinate"])
def test_likely_bounds_hold_for_nearly_all(kind):
    """90,000 products, at six standard deviations; and the bounds are far narrower."""
    rows, others = some_vectors(512, kind)[:300], some_vectors(512, "decaying")
    coder = codes.Coder(512)
    sources, targets = coder.code_sources(rows), coder.code_targets(others)
    found = codes.products(sources.numbers, targets.numbers) * (sources.step * targets.step)
    apart = np.abs(found - rows.astype(float) @ others.astype(float).T)
    by_source, by_target = codes.bounds(sources, targets, likely=True)
    assert (apart <= np.minimum(by_source[:, np.newaxis], by_target) + 1e-5).all()
    # Not so wide that anything would do: two standard deviations do not hold 99 in 100.
    assert (apart > by_source[:, np.newaxis] / 3).mean() > 0.005
    sure, _ = codes.bounds(sources, targets)
    assert (by_source < 0.3 * sure).all()
    if kind == "decaying":
        assert sure.max() < 0.05


@pytest.mark.parametrize("kind", ["sources", "targets"])
def test_vectors_are_coded_alike_in_blocks_and_in_a_file(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(codes, "_ROWS_PER_BLOCK", 7)
    rows = some_vectors(64, "longer")
    code = getattr(codes.Coder(64), f"code_{kind}")
    whole = code(rows)
    with neighbours.threads() as pool:
        for folder in (None, tmp_path):
            found = codes.code_all(rows, code, pool, folder=folder)
            np.testing.assert_array_equal(found.numbers, whole.numbers)
            np.testing.assert_allclose(found.errors, whole.errors, atol=1e-6)
            assert (found.step, found.longest) == (whole.step, whole.longest)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("k", "dim"), [(4, 96), (1, 3), (6, 17)])
def test_codes_and_float32_give_the_same(monkeypatch, k, dim):
    """Also one direction alone, and equal vectors, which are in order."""
    rng = np.random.default_rng(5)
    sources, targets = (unit(rng.normal(size=(n, dim)) + 0.1) for n in (300, 3000))
    targets[1000:2000] = targets[:1000]
    found = []
    for fewest in (1, 10**9):
        monkeypatch.setattr(neighbours, "FEWEST_CODED", fewest)
        both = search(sources, targets, k, rows=120, columns=1100)
        assert_equal(nearest(targets, sources, k), both[1])
        found.append(both)
    for one, other in zip(*found, strict=True):
        assert_equal(one, other)
    indices, similarities = found[0][0].indices, found[0][0].similarities
    ties = similarities[:, 1:] == similarities[:, :-1]
    assert (ties.any() or k == 1) and (np.diff(indices)[ties] > 0).all()


def test_most_pairs_are_left_out_by_their_codes(monkeypatch):
    """Otherwise the search would only be slower for them."""
    compared = []

    def counted(*args, exactly=neighbours.exact_products):
        compared.append(len(args[2]))
        return exactly(*args)

    monkeypatch.setattr(neighbours, "FEWEST_CODED", 1)
    monkeypatch.setattr(neighbours, "exact_products", counted)
    rng = np.random.default_rng(6)
    sides = [unit(rng.normal(size=(2000, 128))) for _ in range(2)]
    search(*sides, 4, rows=500, columns=500)
    assert sum(compared[-8:]) < 0.1 * 8 * 500 * 500


@settings(max_examples=30)
@given(generators, st.integers(1, 30), SIZES, st.sampled_from([4, 16, 64]), st.integers(1, 9))
def test_neighbours_by_bits_are_those_of_the_vectors(generator, n, m, dim, k):
    """Square roots of the dimensions are exact, and so are ties."""
    calibration = Binary(np.zeros(dim, np.float32))
    bits = [calibration.quantise(generator.standard_normal((count, dim))) for count in (n, m)]
    forward, backward = search(*bits, k, search_bits, dim=dim)
    vectors = list(map(calibration.dequantise, bits))
    for found, sides in ((forward, vectors), (backward, vectors[::-1])):
        expected = sorted_whole(*sides, k)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)


# Candidates.


@settings(max_examples=30)
@given(generators, *[st.integers(1, 40)] * 3, st.integers(1, 6))
def test_rescoring_is_the_exact_search_among_the_candidates(generator, n, m, count, k):
    own, others = (generator.integers(-2, 3, (size, 3)).astype(np.float32) for size in (n, m))
    candidates = generator.permuted(np.tile(np.arange(m), (n, 1)), axis=1)[:, :count]
    found = neighbours.rescore(candidates, own, others, k)
    for row, places in enumerate(np.sort(candidates)):
        expected = sorted_whole(own[row : row + 1], others[places], k)
        np.testing.assert_array_equal(found.indices[row], places[expected.indices[0]])
        np.testing.assert_array_equal(found.similarities[row], expected.similarities[0])
