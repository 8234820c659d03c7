"""Which texts are the same, and which targets are known to translate a source."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from labse_tf.systems.hard_negatives.pool import make_pool, partners, text_key, translations


@pytest.mark.parametrize(
    "one, other",
    [
        ("Hello, world!", "hello world"),
        ("Straße", "STRASSE"),
        ("Où est-il ?", "où est il?"),
        ("猫は家を見ます。", "猫は 家を見ます"),
        ("ＡＢＣ １２", "abc 12"),
        ("«Добрый день»", "добрый день"),
        ("می\u200cخواهم", "میخواهم"),
        ("e\u0301te\u0301", "été"),
    ],
)
def test_texts_that_are_the_same(one, other):
    assert text_key(one) == text_key(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("I have 2 cats.", "I have 3 cats."),
        ("किताब", "कताब"),
        ("ไม่ใช่", "ไมใช"),
        ("resume", "résumé"),
        ("!?", "..."),
        ("", "."),
    ],
)
def test_texts_that_are_not(one, other):
    assert text_key(one) != text_key(other)


def test_a_pool_tells_texts_apart_by_their_keys():
    pool = make_pool(["Hi.", "Bye.", "hi!", "Hi."], ["Salut.", "Salut !", "Salut", "Coucou."])
    assert pool.sources == ["Hi.", "Bye."] and pool.targets == ["Salut.", "Coucou."]
    assert pool.pair_sources.tolist() == [0, 1, 0, 0]
    assert pool.pair_targets.tolist() == [0, 0, 0, 1]
    assert pool.links().toarray().tolist() == [[1, 1], [1, 0]]


def matrix(links):
    return sparse.csr_array(np.array(links, np.int32))


@pytest.mark.parametrize(
    "links, expected",
    [
        # Hi-Salut, Hello-Salut, Hello-Bonjour, Bye-Adieu: Hi-Bonjour follows.
        (
            [[1, 0, 0], [1, 1, 0], [0, 0, 1]],
            [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
        ),
        # A chain of three sources: no more than one bridge is crossed.
        (
            [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]],
            [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1]],
        ),
    ],
)
def test_translations_by_hand(links, expected):
    found = translations(matrix(links)).toarray() > 0
    assert found.astype(int).tolist() == expected


@pytest.mark.parametrize("sources, expected", [(20, 2), (21, 1)])
def test_a_text_of_many_partners_is_no_bridge(sources, expected):
    """All sources share target 0, each has one of its own: 21 say nothing of one another."""
    links = np.concatenate([np.ones([sources, 1], int), np.eye(sources, dtype=int)], axis=1)
    found = translations(matrix(links)).toarray() > 0
    assert found[0].sum() == (sources + 1 if expected == 2 else 2)
    assert found[0, :2].all()


def test_a_source_of_many_targets_is_no_bridge():
    """Source 0 shares a target with source 1, but has 21: they do not translate source 1."""
    links = np.zeros([2, 22], int)
    links[0, :21] = links[1, 0] = links[1, 21] = 1
    found = translations(matrix(links)).toarray() > 0
    assert np.flatnonzero(found[1]).tolist() == [0, 21]
    assert found[0].all()


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=25))
def test_translations_are_what_loops_find(pairs):
    links = np.zeros([8, 8], int)
    for source, target in pairs:
        links[source, target] = 1
    expected = links > 0
    for source in range(8):
        for other in range(8):
            if (links[source] & links[other]).any():
                expected[source] |= links[other] > 0
    found = translations(matrix(links)).toarray() > 0
    np.testing.assert_array_equal(found, expected)


def test_partners_are_padded_and_at_most_20():
    links = np.zeros([4, 30], int)
    links[0, [3, 5]] = links[2, 7] = 1
    links[3] = 1
    found = partners(matrix(links))
    assert found.shape == (4, 20)
    assert found[:3, :2].tolist() == [[3, 5], [-1, -1], [7, -1]]
    assert found[3].tolist() == list(range(20)) and (found[0, 2:] == -1).all()
