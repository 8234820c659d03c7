"""Training with hard negatives: from a TSV file to batches, and the loss against NumPy."""

from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.config import EncoderConfig, TrainConfig
from labse_tf.data import streams, texts
from labse_tf.data.pairs import NO_KEY, pair_batches
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.textio import pairs_and_errors, read_lines, strictly
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.training.objectives import DualEncoder, all_inputs

ROWS = [
    ("The cat.", "猫。", ["犬。", "鳥。", "魚。"]),
    ("A dog.", "犬。", ["猫。"]),
    ("A bird.", "鳥。", []),
    ("A fish.", "魚。", ["", " 牛。 ", ""]),
]


def batches_of(corpus, config, tokenizer, **changes):
    changes |= {"bitext": [str(corpus)], "batch_size": 4}
    settings = dataclasses.replace(config.train, **changes)
    return pair_batches(settings, tokenizer, languages=["ja"], seed=config.seed)(0)


@pytest.fixture
def corpus(tmp_path):
    lines = ["\t".join([source, target, *wrong]) + "\n" for source, target, wrong in ROWS]
    with gzip.open(tmp_path / "ja.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    return tmp_path


def decoded(column):
    return [[text.decode() for text in row] for row in column.numpy()]


@pytest.mark.parametrize(
    "count, expected",
    [
        (1, [["犬。"], ["猫。"], [""], [""]]),
        (2, [["犬。", "鳥。"], ["猫。", ""], ["", ""], ["", "牛。"]]),
        (4, [["犬。", "鳥。", "魚。", ""], ["猫。", "", "", ""], [""] * 4, ["", "牛。", "", ""]]),
    ],
)
def test_columns_become_negatives(corpus, count, expected):
    path = str(corpus / "ja.tsv.gz")
    rows = strictly(pairs_and_errors(read_lines(path), path, negatives=count))
    rows = [list(row) for _, row in rows]
    assert [row[:2] for row in rows] == [list(row[:2]) for row in ROWS]
    assert [row[2:] for row in rows] == expected
    (file,) = find_corpus_files([str(corpus)])
    (batch,) = texts.records(file, negatives=count).batch(10)
    source, target, negatives = texts.parse(BITEXT, batch, negatives=count)
    assert decoded(negatives) == expected
    assert [text.decode() for text in target.numpy()] == [row[1] for row in ROWS]
    assert source.shape == (4,) and negatives.shape == (4, count)


def test_a_stream_carries_them(corpus):
    stream = streams.language_streams(find_corpus_files([str(corpus)]), seed=3, negatives=2)["ja"]
    (batch,) = stream.batch(40).take(1)
    source, _, negatives = texts.parse(BITEXT, batch, negatives=2)
    of = {row[0]: (row[2] + ["", ""])[:2] for row in ROWS}
    of["A fish."] = ["", "牛。"]
    for text, wrong in zip(source.numpy(), decoded(negatives), strict=True):
        assert wrong == of[text.decode()]


def test_records_without_negatives_have_empty_ones(corpus):
    """As clean shards, and TSV files read without."""
    (file,) = find_corpus_files([str(corpus)])
    (batch,) = texts.records(file).batch(10)
    assert len(texts.parse(BITEXT, batch)) == 2
    assert decoded(texts.parse(BITEXT, batch, negatives=2)[2]) == [["", ""]] * 4


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("buckets", [[12], [4, 6, 8]])
def test_batches_hold_the_negatives_of_their_pairs(corpus, tiny_config, tokenizer, buckets, cached):
    settings = {"bucket_lengths": buckets, "hard_negatives": 2, "cache_tokens": cached}
    batches = batches_of(corpus, tiny_config, tokenizer, **settings)
    length = buckets[0] if len(buckets) == 1 else None
    spec = batches.element_spec["negatives"]["input_word_ids"]
    assert spec.shape.as_list()[1:] == [2, length]
    missing, known = 0, 0
    for batch in batches.take(8):
        ids, mask = (batch["negatives"][f"input_{name}"].numpy() for name in ("word_ids", "mask"))
        assert ids.shape == (4, 2, batch["source"]["input_word_ids"].shape[1])
        negative_keys = batch["negative_keys"].numpy()
        there = negative_keys != NO_KEY
        np.testing.assert_array_equal(mask.sum(axis=2) > 2, there)  # [CLS] and [SEP] are none.
        missing += (~there).sum()
        # A negative that is another pair's target has its key.
        for key, target in zip(
            batch["keys"].numpy()[:, 1], batch["target"]["input_word_ids"].numpy(), strict=True
        ):
            for found in ids[negative_keys == key]:
                np.testing.assert_array_equal(found, target)
                known += 1
    # Sorted by length, this corpus has no pair beside its negative.
    assert missing and (known or len(buckets) > 1)


PAIRS, COUNT, LENGTH = 4, 2, 6
SETTINGS = TrainConfig(margin=0.3, scale=10.0, hard_negatives=COUNT)


def token_inputs(generator, *shape):
    ids = generator.integers(5, 40, (*shape, LENGTH), dtype=np.int32)
    return {
        "input_word_ids": tf.constant(ids),
        "input_mask": tf.ones_like(ids),
        "input_type_ids": tf.zeros_like(ids),
    }


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(4)
    return {
        "source": token_inputs(generator, PAIRS),
        "target": token_inputs(generator, PAIRS),
        # Pairs 0 and 3 have the same target.
        "keys": tf.constant([[10, 20], [11, 21], [12, 22], [13, 20]]),
        "negatives": token_inputs(generator, PAIRS, COUNT),
        # The first of pair 1 is the target of pairs 0 and 3, the second of pair 2 is none.
        "negative_keys": tf.constant([[30, 31], [20, 33], [34, NO_KEY], [36, 37]]),
    }


STEP = tf.constant(0, tf.int64)


def make_objective(settings):
    tf_keras.utils.set_random_seed(1)
    config = EncoderConfig(
        vocab_size=40,
        hidden_size=8,
        num_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        dropout=0.0,
        initializer_range=0.5,
    )
    encoder = build_encoder(config, replayable=settings.chunk_size > 0)
    return encoder, DualEncoder(encoder, settings)


def softmax_loss(logits, positive):
    return np.log(np.exp(logits).sum()) - logits[positive]


def test_the_loss_by_numpy(batch):
    encoder, objective = make_objective(SETTINGS)
    vectors = embed(encoder, all_inputs(batch), training=False).numpy().astype(np.float64)
    source, target, negatives = np.split(vectors, [PAIRS, 2 * PAIRS])
    assert negatives.shape == (PAIRS * COUNT, 8)
    forward = 10 * source @ np.concatenate([target, negatives]).T
    backward = 10 * target @ source.T
    for index in range(PAIRS):
        forward[index, index] -= 3
        backward[index, index] -= 3
    out = -np.inf
    forward[0, 3] = forward[3, 0] = backward[0, 3] = backward[3, 0] = out
    # Negatives stand behind the four targets: pair 1's first is number 6, pair 2's second 9.
    forward[0, 6] = forward[3, 6] = out
    forward[:, 9] = out
    expected = np.mean(
        [softmax_loss(forward[i], i) + softmax_loss(backward[i], i) for i in range(PAIRS)]
    )
    loss, accuracy = objective.loss(batch, STEP)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    plain = np.where(np.eye(PAIRS, forward.shape[1]) == 1, forward + 3, forward)
    np.testing.assert_allclose(accuracy, np.mean(plain.argmax(axis=1) == np.arange(PAIRS)))


def test_without_the_mask_of_duplicates_only_what_is_none_is_left_out(batch):
    settings = dataclasses.replace(SETTINGS, mask_duplicates=False)
    masked, unmasked = (make_objective(one)[1].loss(batch, STEP)[0] for one in (SETTINGS, settings))
    assert unmasked > masked


@pytest.mark.parametrize("chunk_size", [1, 2])
def test_the_gradient_cache_gives_the_same_gradients(batch, chunk_size):
    encoder, whole = make_objective(SETTINGS)
    other, chunked = make_objective(dataclasses.replace(SETTINGS, chunk_size=chunk_size))
    other.set_weights(encoder.get_weights())
    loss, accuracy, gradients = whole.gradients(batch, STEP, lazy=True)
    found_loss, found_accuracy, found = chunked.gradients(batch, STEP, lazy=True)
    np.testing.assert_allclose(found_loss, loss, rtol=1e-5)
    np.testing.assert_allclose(found_accuracy, accuracy)
    for one, other in zip(found, gradients, strict=True):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
