"""Rows for another vocabulary: sums of the old pieces, so that sentences keep their vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.model.stacking import grow_vocabulary
from vocab.wordpiece import WordPiece

OLD = ["[UNK]", "[CLS]", "a", "b", "##a", "##b", "ab", "##ba", "ไท", "##ย"]
TABLE = np.random.default_rng(0).normal(size=(len(OLD), 3)).astype(np.float32)


@pytest.mark.parametrize("mean", [False, True])
def test_pieces_by_hand(mean):
    spelled = {
        "[CLS]": ["[CLS]"],
        "ab": ["ab"],
        "abba": ["ab", "##ba"],
        "aab": ["a", "##a", "##b"],
        "##abab": ["##a", "##ba", "##b"],
        "ไทย": ["ไท", "##ย"],
        "##c": ["[UNK]"],
        "abc": ["[UNK]"],
        "##": ["[UNK]"],
        "[MASK]": ["[UNK]"],
    }
    rows = grow_vocabulary(TABLE, OLD, list(spelled), mean=mean)
    for row, pieces in zip(rows, spelled.values(), strict=True):
        expected = sum(TABLE[OLD.index(piece)] for piece in pieces) / (len(pieces) if mean else 1)
        np.testing.assert_allclose(row, expected, atol=1e-6)


@given(words=st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=5))
@settings(max_examples=50)
def test_whole_words_keep_the_sum_of_any_sentence(words):
    new = list(dict.fromkeys([*OLD, *words]))
    rows = grow_vocabulary(TABLE, OLD, new, mean=False)
    sums = []
    for tokens, table in ((OLD, TABLE), (new, rows)):
        pieces = WordPiece(tokens, max_bytes_per_word=100).tokenize(" ".join(words))
        sums.append(table[[tokens.index(piece) for piece in pieces]].sum(axis=0))
    np.testing.assert_allclose(sums[1], sums[0], atol=1e-5)
