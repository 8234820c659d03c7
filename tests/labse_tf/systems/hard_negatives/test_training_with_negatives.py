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


def test_columns_become_negatives_and_a_stream_carries_them(corpus):
    path = str(corpus / "ja.tsv.gz")
    files = find_corpus_files([str(corpus)])
    for count, expected in (
        (1, [["犬。"], ["猫。"], [""], [""]]),
        (4, [["犬。", "鳥。", "魚。", ""], ["猫。", "", "", ""], [""] * 4, ["", "牛。", "", ""]]),
    ):
        rows = strictly(pairs_and_errors(read_lines(path), path, negatives=count))
        wanted = [[*row[:2], *wrong] for row, wrong in zip(ROWS, expected, strict=True)]
        assert [list(row) for _, row in rows] == wanted
        (batch,) = texts.records(files[0], negatives=count).batch(10)
        source, target, negatives = texts.parse(BITEXT, batch, negatives=count)
        assert decoded(negatives) == expected
        assert [text.decode() for text in target.numpy()] == [row[1] for row in ROWS]
    # Records without negatives, as in clean shards, have empty ones.
    (batch,) = texts.records(files[0]).batch(10)
    assert len(texts.parse(BITEXT, batch)) == 2
    assert decoded(texts.parse(BITEXT, batch, negatives=2)[2]) == [["", ""]] * 4
    (batch,) = streams.language_streams(files, seed=3, negatives=4)["ja"].batch(40).take(1)
    source, _, negatives = texts.parse(BITEXT, batch, negatives=4)
    of = {row[0]: wrong for row, wrong in zip(ROWS, expected, strict=True)}
    assert decoded(negatives) == [of[text.decode()] for text in source.numpy()]


@pytest.mark.parametrize(("buckets", "cached"), [([12], False), ([4, 6, 8], True)])
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
