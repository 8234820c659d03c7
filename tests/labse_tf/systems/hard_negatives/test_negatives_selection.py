"""Hard negatives of a pool: its texts and translations, and the choice, as loops choose."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from labse_tf.systems.hard_negatives import selection
from labse_tf.systems.hard_negatives.selection import choose, make_pool, partners, text_key

SAME = [
    *("Hello, world!|hello world", "Straße|STRASSE", "Où est-il ?|où est il?"),
    *("猫は家を見ます。|猫は 家を見ます", "ＡＢＣ １２|abc 12", "«Добрый день»|добрый день"),
    *("می\u200cخواهم|میخواهم", "e\u0301te\u0301|été"),
]
OTHER = ["I have 2 cats.|I have 3 cats.", "किताब|कताब", "ไม่ใช่|ไมใช", "resume|résumé"]
OTHER += ["!?|...", "|."]


def test_a_pool_tells_texts_apart_by_their_keys():
    for texts in (*SAME, *OTHER):
        one, other = map(text_key, texts.split("|"))
        assert (one == other) == (texts in SAME), texts
    pool = make_pool(["Hi.", "Bye.", "hi!", "Hi."], ["Salut.", "Salut !", "Salut", "Coucou."])
    assert pool.sources == ["Hi.", "Bye."] and pool.targets == ["Salut.", "Coucou."]
    assert pool.pair_sources.tolist() == [0, 1, 0, 0]
    assert pool.pair_targets.tolist() == [0, 0, 0, 1]
    assert pool.links().toarray().tolist() == [[1, 1], [1, 0]]


def matrix(links):
    return sparse.csr_array(np.array(links, np.int32))


def test_a_text_of_many_partners_is_no_bridge():
    """All sources share target 0, each has one of its own: 21 say nothing of one another."""
    for sources, bridged in ((20, 21), (21, 2)):
        links = np.concatenate([np.ones([sources, 1], int), np.eye(sources, dtype=int)], axis=1)
        found = selection.translations(matrix(links)).toarray() > 0
        assert found[0].sum() == bridged and found[0, :2].all()
    # Source 0 shares a target with source 1, but has 21: they do not translate source 1.
    links = np.zeros([2, 22], int)
    links[0, :21] = links[1, 0] = links[1, 21] = 1
    found = selection.translations(matrix(links)).toarray() > 0
    assert np.flatnonzero(found[1]).tolist() == [0, 21] and found[0].all()


def test_partners_are_padded_and_at_most_20():
    links = np.zeros([3, 30], int)
    links[0, [3, 5]] = links[2] = 1
    padding = [-1] * 20
    assert partners(matrix(links)).tolist() == [[3, 5, *padding[2:]], padding, [*range(20)]]


def loops(pool, sources, targets, count, max_similarity):
    """Same as `choose`, a source and a target at a time, without a bound on the search."""
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
    names = random.integers(0, texts, [2, pairs]) + [[0x4E00], [0x1200]]
    pool = make_pool(*(list(map(chr, side)) for side in names))
    sides = []
    for side in (pool.sources, pool.targets):
        vectors = random.normal(size=[len(side), 3])
        sides.append((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
    found = choose(pool, *sides, count=count, max_similarity=max_similarity)
    targets, left_out = loops(pool, *sides, count, max_similarity)
    np.testing.assert_array_equal(found.targets, targets)
    assert found.left_out == left_out
    np.testing.assert_array_equal(np.isnan(found.similarities), targets < 0)
    rows, columns = np.nonzero(targets >= 0)
    similarities = (sides[0] @ sides[1].T)[rows, targets[rows, columns]]
    np.testing.assert_allclose(found.similarities[rows, columns], similarities, atol=1e-5)
    own = np.where(pool.links().toarray() > 0, sides[0] @ sides[1].T, -np.inf).max(axis=1)
    np.testing.assert_allclose(found.translation, own, atol=1e-5)


def test_blocks_and_depths_change_nothing(monkeypatch):
    """Few rows at once, and a search that must go deeper: every source is near to many."""
    random = np.random.default_rng(5)
    names = [f"s{index}" for index in range(300)]
    pool = make_pool(names, [name.upper() + "x" for name in names])
    vectors = random.normal(size=[2, 300, 4]) + [3, 0, 0, 0]
    sides = (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).astype(np.float32)
    arguments = {"count": 2, "max_similarity": 0.93}
    expected = choose(pool, *sides, **arguments)
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
