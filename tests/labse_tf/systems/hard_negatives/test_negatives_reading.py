"""Hard negatives from a TSV file to batches for the encoder."""

from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.data import streams, texts
from labse_tf.data.pairs import NO_KEY, pair_batches
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.textio import pairs_and_errors, read_lines, strictly

ROWS = [
    ("The cat.", "猫。", ["犬。", "鳥。", "魚。"]),
    ("A dog.", "犬。", ["猫。"]),
    ("A bird.", "鳥。", []),
    ("A fish.", "魚。", ["", " 牛。 ", ""]),
]


def batches_of(config, tokenizer, **kwargs):
    settings = {"languages": config.languages, "seed": config.seed}
    return pair_batches(config.train, tokenizer, **settings, **kwargs)(0)


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


def test_a_line_at_fault(tmp_path):
    (tmp_path / "ja.tsv").write_text("a\tb\tc\nd\n", "utf-8")
    (file,) = find_corpus_files([str(tmp_path)])
    with pytest.raises(InputError, match="one column") as caught:
        next(texts.columns(file, negatives=2))
    assert caught.value.line == 2


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


def test_a_run_without_negatives_ignores_the_columns(corpus, tiny_config, tokenizer):
    settings = dataclasses.replace(tiny_config.train, bitext=[str(corpus)], batch_size=4)
    config = dataclasses.replace(tiny_config, train=settings, languages=["ja"])
    assert config.train.hard_negatives == 0
    (batch,) = batches_of(config, tokenizer).take(1)
    assert len(tf.nest.flatten(batch)) >= 6


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("buckets", [[12], [4, 6, 8]])
def test_batches_hold_the_negatives_of_their_pairs(corpus, tiny_config, tokenizer, buckets, cached):
    settings = dataclasses.replace(
        tiny_config.train,
        bitext=[str(corpus)],
        batch_size=4,
        bucket_lengths=buckets,
        hard_negatives=2,
        cache_tokens=cached,
    )
    config = dataclasses.replace(tiny_config, train=settings, languages=["ja"])
    missing, known = 0, 0
    for batch in batches_of(config, tokenizer).take(8):
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


def test_one_bucket_has_a_static_length(corpus, tiny_config, tokenizer):
    settings = dataclasses.replace(
        tiny_config.train, bitext=[str(corpus)], bucket_lengths=[12], hard_negatives=3
    )
    config = dataclasses.replace(tiny_config, train=settings, languages=["ja"])
    spec = batches_of(config, tokenizer).element_spec
    assert spec["negatives"]["input_word_ids"].shape[1:] == (3, 12)
    assert spec["negative_keys"].shape[1:] == (3,)
