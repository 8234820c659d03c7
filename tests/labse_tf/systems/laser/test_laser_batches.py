"""Directions and batches of LASER, on pairs of many scripts."""

from __future__ import annotations

import numpy as np
import pytest
from text_files import write_lines
from tiny_text import FOREIGN, sentences_of

from labse_tf.data import streams
from labse_tf.errors import InputError
from labse_tf.systems.laser.batches import _pairs_per_batch, find_directions, laser_batches
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.train import read_held_out

SETTINGS = LaserConfig(targets=["en", "de"], batch_tokens=128, bucket_lengths=[8, 12, 16, 32])


@pytest.fixture(scope="module")
def german_dir(tmp_path_factory):
    """German in the place of English: with Japanese, with English, and with itself."""
    folder = tmp_path_factory.mktemp("german")
    for language in ("ja", "en", "de"):
        pairs = zip(sentences_of("de"), sentences_of(language), strict=True)
        write_lines(folder / f"{language}.tsv", map("\t".join, pairs))
    return folder


def directions_of(bitext, german=(), languages=(), targets=("en", "de")):
    folders = ([str(one) for one in bitext], [f"de={folder}" for folder in german])
    return find_directions(*folders, targets, languages, key="laser.bitext")


def test_replicas_that_cannot_share_a_batch_are_refused(tokenizer, bitext_dir):
    with pytest.raises(InputError, match="set it to 160 or more"):
        laser_batches(SETTINGS, tokenizer, directions_of([bitext_dir]), seed=1, replicas=5)


def test_batches_have_all_pairs_in_the_right_direction(tokenizer, bitext_dir, german_dir):
    directions = directions_of([bitext_dir], [german_dir])
    batches = laser_batches(SETTINGS, tokenizer, directions, seed=3)
    tokens = np.array([t.removeprefix("##") for t in tokenizer.tokens])
    tokens[[tokenizer.tokens.index(t) for t in ("[CLS]", "[SEP]", "[PAD]")]] = ""
    seen = set()
    for batch in batches.take(250).as_numpy_iterator():
        sides = (map("".join, tokens[batch[name]]) for name in ("input_word_ids", "targets"))
        seen.update(zip(*sides, batch["target_language"].tolist(), strict=True))

    pairs = [(code, "en", 0) for code in FOREIGN] + [("en", "de", 1), ("ja", "de", 1)]
    expected = {
        (source.replace(" ", ""), target.replace(" ", ""), number)
        for code, other, number in pairs
        for source, target in zip(sentences_of(code), sentences_of(other), strict=True)
    }
    assert seen == expected


def test_the_shape_of_batches(tokenizer, bitext_dir, tmp_path):
    """Sources are [CLS] ... [SEP], targets ... [SEP]; long texts are cut."""
    directions, replicas = directions_of([bitext_dir], languages=["de", "ja"]), 3
    special, lengths = tokenizer.special_tokens, set()
    batches = laser_batches(SETTINGS, tokenizer, directions, seed=3, replicas=replicas)
    for batch in batches.take(30).as_numpy_iterator():
        source, targets = batch["input_word_ids"], batch["targets"]
        rows, length = source.shape
        lengths.add(length)
        assert rows == 128 // length // replicas * replicas and targets.shape == (rows, length)
        longest = max((ids != 0).sum(axis=1).max() for ids in (source, targets))
        assert length == min(one for one in SETTINGS.bucket_lengths if one >= longest)
        assert set(source[:, 0]) == {special["start_of_sequence_id"]}
        last = (targets != 0).sum(axis=1, keepdims=True) - 1
        ends = np.take_along_axis(targets, last, axis=1)
        assert set(ends.ravel()) == {special["end_of_segment_id"]}
    assert len(lengths) > 1
    write_lines(tmp_path / "de.tsv", ["a " * 50 + "\t" + "b " * 50])
    long = laser_batches(SETTINGS, tokenizer, directions_of([tmp_path]), seed=1)
    batch = next(long.as_numpy_iterator())
    for name in ("input_word_ids", "targets"):
        assert batch[name].shape == (4, 32)
        assert set(batch[name][:, -1]) == {special["end_of_segment_id"]}


def test_a_resumed_run_sees_the_batches_that_follow(tokenizer, bitext_dir, monkeypatch):
    directions = directions_of([bitext_dir], languages=["de", "ja"])

    def some(start, end):
        batches = laser_batches(SETTINGS, tokenizer, directions, seed=5, step=start)
        return list(batches.take(end - start).as_numpy_iterator())

    first = some(0, 6)
    monkeypatch.setattr(streams, "SEGMENT", 6)
    second = some(6, 12)
    for whole, rest in ((first, some(4, 6)), (second, some(10, 12))):
        for one, other in zip(whole[4:], rest, strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])
    # Each segment has an order of its own. (Two orders may have the same shapes.)
    orders = [[batch["targets"].tolist() for batch in batches] for batches in (first, second)]
    assert orders[0] != orders[1]


def test_the_pairs_of_a_batch_are_estimated(tmp_path, tokenizer):
    """Two short pairs, of which a batch has 40, and a long one, of which it has 10."""
    long = " ".join(["cat"] * 20)
    write_lines(tmp_path / "de.tsv", ["cat\tcat", "cat\tcat", f"{long}\tcat"])
    directions = directions_of([tmp_path], targets=["en"])
    found = _pairs_per_batch(tokenizer, directions, np.ones(1), [8, 32], [40, 10])
    assert found == pytest.approx(1 / (2 / 3 / 40 + 1 / 3 / 10))


def test_held_out_pairs_of_one_name_are_all_measured(tokenizer, bitext_dir, german_dir):
    """English and German are in both kinds of corpora; 48 pairs each."""
    found = read_held_out(SETTINGS, tokenizer, directions_of([bitext_dir], [german_dir]))
    rows = {name: sum(len(one["targets"]) for one in some) for name, some in found.items()}
    assert rows == {f"{code}-en": 48 for code in FOREIGN} | {"en-de": 96, "ja-de": 48}
    some = directions_of([bitext_dir], [german_dir], ("en", "ja", "de"))
    assert [one.name for one in some] == ["de-en", "en-de", "en-de", "ja-de", "ja-en"]
