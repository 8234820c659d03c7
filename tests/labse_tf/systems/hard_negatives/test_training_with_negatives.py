"""Hard negatives from a TSV file to batches; test_matryoshka.py has the loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from text_files import write_lines

from labse_tf.data import streams, texts
from labse_tf.data.pairs import NO_KEY, pair_batches
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.textio import pairs_and_errors, read_lines, strictly

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
    lines = ["\t".join([source, target, *wrong]) for source, target, wrong in ROWS]
    write_lines(tmp_path / "ja.tsv.gz", lines)
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


def test_records_without_negatives_have_empty_ones_and_a_stream_carries_them(corpus):
    """As clean shards, and TSV files read without."""
    (file,) = find_corpus_files([str(corpus)])
    (batch,) = texts.records(file).batch(10)
    assert len(texts.parse(BITEXT, batch)) == 2
    assert decoded(texts.parse(BITEXT, batch, negatives=2)[2]) == [["", ""]] * 4
    stream = streams.language_streams(find_corpus_files([str(corpus)]), seed=3, negatives=2)["ja"]
    (batch,) = stream.batch(40).take(1)
    source, _, negatives = texts.parse(BITEXT, batch, negatives=2)
    of = {row[0]: (row[2] + ["", ""])[:2] for row in ROWS}
    of["A fish."] = ["", "牛。"]
    for text, wrong in zip(source.numpy(), decoded(negatives), strict=True):
        assert wrong == of[text.decode()]


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
