"""Drawing pairs that are in memory."""

from __future__ import annotations

import numpy as np

from labse_tf.data.token_cache import TokenCache, draw_pairs


def drawn_of(cache, weights, windows, **kwargs):
    return np.concatenate(list(draw_pairs(cache, weights, **kwargs).take(windows)))


def test_pairs_in_memory_are_drawn_by_weight_and_each_once_a_pass():
    sizes = {"de": 10, "fr": 7, "ja": 1, "th": 4}
    cache = TokenCache([], None, None, sizes)
    weights = {"de": 0.5, "fr": 0.0, "ja": 0.1, "th": 0.4}
    drawn = drawn_of(cache, weights, 50, seed=3, draws=100)
    assert not ((drawn >= 10) & (drawn < 17)).any()
    for start, language in ((0, "de"), (17, "ja"), (18, "th")):
        size, share = sizes[language], weights[language]
        own = drawn[(drawn >= start) & (drawn < start + size)] - start
        assert abs(len(own) - 5000 * share) < 5 * np.sqrt(5000 * share * (1 - share))
        passes = own[: len(own) // size * size].reshape(-1, size)
        np.testing.assert_array_equal(np.sort(passes), np.tile(np.arange(size), (len(passes), 1)))
        if size > 1:
            assert len(np.unique(passes, axis=0)) > 5  # Each pass has an order of its own.
    np.testing.assert_array_equal(drawn, drawn_of(cache, weights, 50, seed=3, draws=100))
    assert (drawn != drawn_of(cache, weights, 50, seed=4, draws=100)).any()


def test_copies_are_pairs_of_one_language():
    cache = TokenCache([], None, None, {"de": 10, "th": 10})
    drawn = drawn_of(cache, {"de": 0.5, "th": 0.5}, 5, seed=3, draws=8, copies=5)
    assert drawn.shape == (200,)
    blocks = drawn.reshape(-1, 5) // 10
    assert (blocks == blocks[:, :1]).all() and set(blocks[:, 0]) == {0, 1}
