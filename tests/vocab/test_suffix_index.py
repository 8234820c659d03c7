"""The index of suffixes: worked by hand, and against a plain search on any words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vocab.suffix_index import index_suffixes


def strings(index):
    return [index.string(suffix) for suffix in range(len(index))]


def test_hand_worked_example():
    index = index_suffixes(["aba", "ab", "ba"])
    # Level 0: what no other suffix begins. Level 1: "aba" and "ab" after "a", "ba" after "b"; but
    # "aba" has the prefixes "ab" and "a": level 2.
    assert strings(index) == ["", "a", "b", "ab", "ba", "aba"]
    assert [index.string(suffix) for suffix in index.prefix] == ["", "", "", "a", "b", "ab"]
    assert index.levels == [0, 3, 5, 6]
    chosen = np.array([False, True, False, False, False, True])
    longest = index.longest_prefix_in(chosen)
    assert [index.string(suffix) for suffix in longest] == ["", "a", "", "a", "", "aba"]


def test_no_words():
    index = index_suffixes([])
    assert strings(index) == [""]
    assert index.word_starts.tolist() == []


@given(st.lists(st.text("ab\0\u0301中😀", max_size=9)))
def test_holds_every_suffix_and_its_prefixes(words):
    index = index_suffixes(words)
    found = strings(index)
    expected = {word[start:] for word in words for start in range(len(word) + 1)} | {""}
    assert set(found) == expected
    assert len(found) == len(expected)
    for word, start in zip(words, index.word_starts.tolist(), strict=True):
        assert [found[n] for n in index.at[start : start + len(word) + 1]] == [
            word[cut:] for cut in range(len(word) + 1)
        ]
    for suffix, prefix in zip(found, index.prefix, strict=True):
        shorter = [suffix[:end] for end in range(len(suffix)) if suffix[:end] in expected]
        assert found[prefix] == (shorter[-1] if shorter else "")
