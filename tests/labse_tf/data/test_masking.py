"""Masking for MLM: what is chosen, how it is hidden, and that the seed alone decides."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.data.masking import mask_tokens

PADDING, START, END, MASK, FIRST, VOCAB = 0, 101, 102, 103, 104, 400
SPECIAL = {
    "vocab_size": VOCAB,
    "padding_id": PADDING,
    "start_of_sequence_id": START,
    "end_of_segment_id": END,
    "mask_id": MASK,
}


def packed(lengths, length, *, seed=0, second=()):
    """Rows `[CLS] tokens [SEP] padding`; rows in `second` have a [SEP] inside too."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(FIRST, VOCAB, (len(lengths), length)).astype(np.int32)
    mask = np.zeros_like(ids)
    for row, count in enumerate(lengths):
        ids[row, 0] = START
        ids[row, count + 1] = END
        ids[row, count + 2 :] = PADDING
        mask[row, : count + 2] = 1
        if row in second:
            ids[row, 1 + count // 2] = END
    return {
        "input_word_ids": tf.constant(ids),
        "input_mask": tf.constant(mask),
        "input_type_ids": tf.zeros_like(mask),
    }


def masked(inputs, *, fraction=0.2, predictions=10, seed=(1, 2)):
    result = mask_tokens(
        inputs,
        special_tokens=SPECIAL,
        first_ordinary_id=FIRST,
        mask_fraction=fraction,
        max_predictions=predictions,
        seed=tf.constant(seed, tf.int64),
    )
    return {name: value.numpy() for name, value in result.items()}


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    fraction=st.floats(0.01, 0.99),
    predictions=st.integers(1, 32),
    seed=st.tuples(st.integers(0, 2**31), st.integers(0, 2**31)),
)
def test_invariants(lengths, fraction, predictions, seed):
    inputs = packed(lengths, 32, second=range(0, len(lengths), 2))
    before = inputs["input_word_ids"].numpy()
    result = masked(inputs, fraction=fraction, predictions=predictions, seed=seed)
    after, weights = result["input_word_ids"], result["masked_weights"]
    positions = result["masked_positions"]
    assert positions.shape == weights.shape == result["masked_ids"].shape
    assert positions.shape == (len(lengths), predictions)
    assert positions.dtype == result["masked_ids"].dtype == after.dtype == np.int32
    assert weights.dtype == np.float32 and set(np.unique(weights)) <= {0.0, 1.0}
    for name in ("input_mask", "input_type_ids"):
        np.testing.assert_array_equal(result[name], inputs[name])
    for row in range(len(lengths)):
        chosen = positions[row][weights[row] == 1.0]
        assert len(set(chosen)) == len(chosen)
        # Never [CLS], [SEP] or padding; the ids are the tokens that were there.
        assert all(before[row, place] >= FIRST for place in chosen)
        np.testing.assert_array_equal(
            result["masked_ids"][row][weights[row] == 1.0], before[row, chosen]
        )
        # All the others are untouched.
        untouched = np.setdiff1d(np.arange(32), chosen)
        np.testing.assert_array_equal(after[row, untouched], before[row, untouched])
        assert all(after[row, place] == MASK or after[row, place] >= FIRST for place in chosen)
        ordinary = int((before[row] >= FIRST).sum())
        # NumPy rounds halves to even, as TensorFlow does.
        wanted = max(1, int(np.round(np.float32(ordinary) * np.float32(fraction))))
        assert len(chosen) == min(wanted, ordinary, predictions)


def test_the_papers_numbers():
    """512 tokens: 20 % are 102, of which at most 80 are predicted (section 3.2)."""
    result = masked(packed([510, 300], 512), fraction=0.2, predictions=80)
    assert result["masked_positions"].shape == (2, 80)
    assert result["masked_weights"].sum(axis=1).tolist() == [80.0, 60.0]


def test_a_sequence_without_ordinary_tokens_predicts_nothing():
    inputs = packed([0, 3], 8)
    result = masked(inputs, predictions=4)
    assert result["masked_weights"].sum(axis=1).tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(result["input_word_ids"][0], inputs["input_word_ids"].numpy()[0])


def test_eighty_ten_ten():
    """18,000 choices: each share within 5 standard deviations of the binomial."""
    inputs = packed([90] * 1000, 92)
    result = masked(inputs, fraction=0.2, predictions=18)
    rows = np.arange(1000)[:, None]
    new = result["input_word_ids"][rows, result["masked_positions"]]
    old = result["masked_ids"]
    total = new.size
    assert result["masked_weights"].sum() == total == 18_000

    def assert_share(count, share):
        assert abs(count - total * share) < 5 * np.sqrt(total * share * (1 - share))

    assert_share((new == MASK).sum(), 0.8)
    # Of the random tokens one in the ordinary ones is the old one again.
    again = 0.1 / (VOCAB - FIRST)
    assert_share((new == old).sum(), 0.1 + again)
    replaced = new[(new != MASK) & (new != old)]
    assert_share(replaced.size, 0.1 - again)
    # Random tokens come from the whole of the ordinary vocabulary, and only from it.
    assert replaced.min() >= FIRST and replaced.max() < VOCAB
    assert len(np.unique(replaced)) > 0.98 * (VOCAB - FIRST)


def test_every_place_is_as_likely():
    """2,000 times 18 of 90 places: each about 400 times."""
    result = masked(packed([90] * 2000, 92), fraction=0.2, predictions=18)
    counts = np.bincount(result["masked_positions"].ravel(), minlength=92)
    assert counts[0] == counts[91] == 0
    deviation = np.sqrt(2000 * 0.2 * 0.8)
    assert np.abs(counts[1:91] - 400).max() < 5 * deviation


def test_the_seed_alone_decides():
    inputs = packed([20, 25, 30], 32)
    one, again, other, another = (
        masked(inputs, seed=seed) for seed in ((1, 2), (1, 2), (1, 3), (2, 2))
    )
    tf.random.set_seed(99)
    after_a_global_seed = masked(inputs, seed=(1, 2))
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])
        np.testing.assert_array_equal(one[name], after_a_global_seed[name])
    for different in (other, another):
        assert (one["masked_positions"] != different["masked_positions"]).any()


def test_rows_are_masked_apart():
    row = packed([30], 32)
    inputs = {name: tf.repeat(value, 8, axis=0) for name, value in row.items()}
    positions = masked(inputs)["masked_positions"]
    assert len({tuple(row) for row in positions}) == 8


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    fraction=st.floats(0.05, 0.95),
    seed=st.tuples(st.integers(0, 2**31), st.integers(0, 2**31)),
)
def test_each_text_of_a_sequence_has_its_fraction_chosen(lengths, fraction, seed):
    length = 90
    texts = [[START, *range(FIRST, FIRST + count), END] for count in lengths]
    ids = sum(texts, [])
    starts = np.cumsum([0, *map(len, texts)])
    padding = [0] * (length - len(ids))
    positions = [place for text in texts for place in range(len(text))] + padding
    inputs = {
        "input_word_ids": tf.constant([ids + padding] * 2),
        "input_mask": tf.constant([[1] * len(ids) + padding] * 2),
        "input_type_ids": tf.zeros((2, length), tf.int32),
        "input_positions": tf.constant([positions] * 2),
    }
    result = masked(inputs, fraction=fraction, predictions=length, seed=seed)
    both = zip(result["masked_positions"], result["masked_weights"], strict=True)
    for places, weights in both:
        chosen = places[weights == 1.0]
        assert len(set(chosen)) == len(chosen)
        for start, count in zip(starts, lengths, strict=False):
            of_text = chosen[(chosen > start) & (chosen <= start + count)]
            assert len(of_text) == max(1, np.round(np.float32(count) * np.float32(fraction)))
        wanted = [max(1, np.round(np.float32(n) * np.float32(fraction))) for n in lengths]
        assert len(chosen) == sum(wanted)


def test_all_tokens_of_a_text_are_equally_often_chosen():
    """One of 5, in the second of three texts, 1,000 times: 200 each, less than five sigma off."""
    texts = [[START, *range(FIRST, FIRST + count), END] for count in (3, 5, 4)]
    row = [number for text in texts for number in text]
    positions = [place for text in texts for place in range(len(text))]
    inputs = {
        "input_word_ids": tf.constant([row] * 1000),
        "input_mask": tf.ones((1000, len(row)), tf.int32),
        "input_type_ids": tf.zeros((1000, len(row)), tf.int32),
        "input_positions": tf.constant([positions] * 1000),
    }
    result = masked(inputs)
    chosen = result["masked_positions"][result["masked_weights"] == 1.0]
    counts = np.bincount(chosen, minlength=len(row))
    assert counts.sum() == 3000
    assert np.abs(counts[6:11] - 200).max() < 5 * np.sqrt(1000 * 0.2 * 0.8)
