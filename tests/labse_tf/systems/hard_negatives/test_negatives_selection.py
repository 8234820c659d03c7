"""The choice of negatives: by hand on a circle, and as loops choose them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.systems.hard_negatives import selection
from labse_tf.systems.hard_negatives.pool import make_pool
from labse_tf.systems.hard_negatives.selection import choose


def circle(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@dataclasses.dataclass
class Case:
    """Texts are letters: `a` is paired with `A`. cos 10 = 0.985, cos 20 = 0.940, cos 30 = 0.866."""

    pairs: str
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    count: int
    max_similarity: float
    of_a: str

    @property
    def pool(self):
        return make_pool(*zip(*self.pairs.split(), strict=True))


CASES = {
    "the nearest first": Case("aA bB cC dD", (0, 90, 180, 270), (0, 50, 20, 35), 2, 1, "CD"),
    "no target of the same source": Case("aA aB cC dD", (0, 90, 180), (0, 5, 40, 50), 2, 1, "CD"),
    "no target of a source that shares one": Case(
        "aA bA bB cC", (0, 90, 180), (0, 30, 60), 2, 1, "C"
    ),
    "no target too near to the translation": Case(
        "aA bB cC", (0, 90, 180), (40, 30, 80), 1, 0.95, "C"
    ),
    "nearer to the source than its translation is no matter": Case(
        "aA bB cC", (0, 90, 180), (40, 0, 80), 1, 0.95, "B"
    ),
    "no target of a source too near to this one": Case(
        "aA bB cC", (0, 10, 90), (0, 60, 90), 1, 0.95, "C"
    ),
    "fewer than asked for": Case("aA bB", (0, 90), (0, 90), 3, 0.95, "B"),
    "none": Case("aA", (0,), (0,), 1, 1, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_negatives_by_hand(name):
    case = CASES[name]
    pool, sources, targets = case.pool, circle(*case.sources), circle(*case.targets)
    found = choose(pool, sources, targets, count=case.count, max_similarity=case.max_similarity)
    chosen = [pool.targets[place] for place in found.targets[0] if place >= 0]
    assert "".join(chosen) == case.of_a
    assert found.targets.shape == found.similarities.shape == (len(pool.sources), case.count)
    np.testing.assert_array_equal(np.isnan(found.similarities), found.targets < 0)
    for place, similarity in zip(found.targets[0], found.similarities[0], strict=True):
        if place >= 0:
            assert similarity == pytest.approx(sources[0] @ targets[place], abs=1e-6)


def test_what_is_left_out_is_counted_by_reason():
    """Of a and b: the other's target is too near to theirs, or their sources are; C is chosen.

    Of c, whose negative is B or A: its own target, which lies before.
    """
    pool = make_pool("abc", "ABC")
    arguments = {"count": 1, "max_similarity": 0.95}
    found = choose(pool, circle(0, 60, 180), circle(30, 40, 110), **arguments)
    assert found.left_out == {"translation": 3, "near_target": 2, "near_source": 0}
    found = choose(pool, circle(0, 10, 180), circle(0, 60, 110), **arguments)
    assert found.left_out == {"translation": 3, "near_target": 0, "near_source": 2}


def test_the_similarity_of_the_nearest_translation():
    pool = make_pool("aac", "ABC")
    found = choose(pool, circle(0, 90), circle(60, 30, 90), count=1, max_similarity=1)
    np.testing.assert_allclose(found.translation, [np.cos(np.radians(30)), 1.0], atol=1e-6)


def loops(pool, sources, targets, count, max_similarity):
    """What `choose` says, a source and a target at a time, without a bound on the search."""
    links = pool.links().toarray() > 0
    chosen, left_out = [], {"translation": 0, "near_target": 0, "near_source": 0}
    for source in range(len(sources)):
        known = links[source].copy()
        for other in range(len(sources)):
            if (links[source] & links[other]).any():
                known |= links[other]
        row = []
        for target in sorted(range(len(targets)), key=lambda t: -(sources[source] @ targets[t])):
            if len(row) == count:
                break
            if known[target]:
                left_out["translation"] += 1
            elif (targets[links[source]] @ targets[target]).max() > max_similarity:
                left_out["near_target"] += 1
            elif (sources[links[:, target]] @ sources[source]).max() > max_similarity:
                left_out["near_source"] += 1
            else:
                row.append(target)
        chosen.append(row + [-1] * (count - len(row)))
    return np.array(chosen), left_out


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    pairs=st.integers(1, 60),
    texts=st.integers(1, 30),
    count=st.integers(1, 4),
    max_similarity=st.sampled_from([0.3, 0.7, 1.0]),
)
def test_negatives_are_what_loops_choose(seed, pairs, texts, count, max_similarity):
    random = np.random.default_rng(seed)
    # Letters of two scripts, which keys tell apart.
    names = random.integers(0, texts, [2, pairs])
    pool = make_pool(
        [chr(0x4E00 + name) for name in names[0]], [chr(0x1200 + name) for name in names[1]]
    )
    sides = []
    for side in (pool.sources, pool.targets):
        vectors = random.normal(size=[len(side), 3])
        sides.append((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
    found = choose(pool, *sides, count=count, max_similarity=max_similarity)
    targets, left_out = loops(pool, *sides, count, max_similarity)
    np.testing.assert_array_equal(found.targets, targets)
    assert found.left_out == left_out


def test_blocks_and_depths_change_nothing(monkeypatch):
    """Few rows at once, and a search that must go deeper: every source is near to many."""
    random = np.random.default_rng(5)
    names = [f"s{index}" for index in range(300)]
    pool = make_pool(names, [name.upper() + "x" for name in names])
    vectors = random.normal(size=[2, 300, 4]) + [3, 0, 0, 0]
    sides = (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).astype(np.float32)
    done = []
    arguments = {"count": 2, "max_similarity": 0.93}
    expected = choose(pool, *sides, **arguments, on_progress=done.append)
    assert sum(done) == 300
    np.testing.assert_array_equal(expected.targets, loops(pool, *sides, 2, 0.93)[0])
    monkeypatch.setattr(selection, "_BYTES_AT_ONCE", 10_000)
    monkeypatch.setattr(selection, "_LOOK_AT", 2)
    found = choose(pool, *sides, **arguments)
    np.testing.assert_array_equal(found.targets, expected.targets)
    assert found.left_out == expected.left_out
    # A bound on the search leaves some with fewer, and changes none of those found.
    monkeypatch.setattr(selection, "_MOST_LOOKED_AT", 4)
    bounded = choose(pool, *sides, **arguments)
    is_there = bounded.targets >= 0
    assert is_there.sum() < (expected.targets >= 0).sum()
    np.testing.assert_array_equal(bounded.targets[is_there], expected.targets[is_there])
