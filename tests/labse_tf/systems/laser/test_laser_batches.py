"""Directions and batches of LASER, on pairs of many scripts."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from text_files import write_lines
from tiny_text import FOREIGN, sentences_of

from labse_tf.data import streams
from labse_tf.errors import InputError
from labse_tf.systems.laser.batches import (
    _pairs_per_batch,
    check_sources,
    find_directions,
    laser_batches,
)
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.train import read_held_out

SETTINGS = LaserConfig(targets=["en", "de"], batch_tokens=128, bucket_lengths=[8, 12, 16, 32])


@pytest.fixture(scope="module")
def german_dir(tmp_path_factory):
    """German in the place of English: with Japanese, with English, and with itself."""
    folder = tmp_path_factory.mktemp("german")
    for language in ("ja", "en", "de"):
        pairs = zip(sentences_of("de"), sentences_of(language), strict=True)
        lines = "".join(f"{german}\t{other}\n" for german, other in pairs)
        (folder / f"{language}.tsv").write_text(lines, "utf-8")
    return folder


def directions_of(bitext, german=(), languages=(), targets=("en", "de")):
    entries = [f"de={folder}" for folder in german]
    return find_directions(
        [str(one) for one in bitext], entries, list(targets), list(languages), key="laser.bitext"
    )


def test_the_directions(bitext_dir, german_dir):
    into_english = [f"{code}-en" for code in FOREIGN]
    found = [one.name for one in directions_of([bitext_dir])]
    assert sorted(found) == sorted([*into_english, "en-de"])
    found = [one.name for one in directions_of([bitext_dir], [german_dir])]
    # Twice from English: its pairs are in both folders, on other sides.
    assert sorted(found) == sorted([*into_english, "en-de", "en-de", "ja-de"])
    found = [one.name for one in directions_of([bitext_dir], [german_dir], ["en", "ja", "de"])]
    assert sorted(found) == ["de-en", "en-de", "en-de", "ja-de", "ja-en"]


def test_what_cannot_be_trained_is_refused(tokenizer, bitext_dir):
    with pytest.raises(InputError, match="no pair of 'laser.bitext' has a target in ko, zh"):
        directions_of([bitext_dir], targets=("ko", "zh"))
    with pytest.raises(InputError, match="no pair translates en, so its sentences"):
        check_sources(directions_of([bitext_dir], languages=["ja"]), ["en", "de"])
    check_sources(directions_of([bitext_dir]), ["en", "de"])
    with pytest.raises(InputError, match="set it to 160 or more"):
        laser_batches(SETTINGS, tokenizer, directions_of([bitext_dir]), seed=1, replicas=5)


def texts_of(tokenizer, ids):
    """The rows' texts, as the tokens spell them."""
    tokens = np.array(tokenizer.tokens)[ids]
    drop = ("[CLS]", "[SEP]", "[PAD]")
    return ["".join(t for t in row if t not in drop).replace("##", "") for row in tokens]


def test_batches_have_all_pairs_in_the_right_direction(tokenizer, bitext_dir, german_dir):
    directions = directions_of([bitext_dir], [german_dir])
    batches = laser_batches(SETTINGS, tokenizer, directions, seed=3)
    seen = collections.Counter()
    for batch in batches.take(250).as_numpy_iterator():
        sources, targets = (
            texts_of(tokenizer, batch[name]) for name in ("input_word_ids", "targets")
        )
        seen.update(zip(sources, targets, batch["target_language"].tolist(), strict=True))

    def squeezed(language):
        return [sentence.replace(" ", "") for sentence in sentences_of(language)]

    expected = set()
    for code in FOREIGN:
        rows = zip(squeezed(code), squeezed("en"), strict=True)
        expected |= {(source, target, 0) for source, target in rows}
    for code in ("en", "ja"):
        rows = zip(squeezed(code), squeezed("de"), strict=True)
        expected |= {(source, target, 1) for source, target in rows}
    assert set(seen) == expected


def test_the_shape_of_batches(tokenizer, bitext_dir):
    directions, replicas = directions_of([bitext_dir]), 3
    batches = laser_batches(SETTINGS, tokenizer, directions, seed=3, replicas=replicas)
    lengths = set()
    for batch in batches.take(60).as_numpy_iterator():
        rows, length = batch["input_word_ids"].shape
        lengths.add(length)
        assert length in SETTINGS.bucket_lengths
        assert rows == 128 // length // replicas * replicas
        assert batch["targets"].shape == (rows, length)
        longest = max((batch[name] != 0).sum(axis=1).max() for name in ("input_mask", "targets"))
        shorter = [0, *SETTINGS.bucket_lengths][SETTINGS.bucket_lengths.index(length)]
        assert shorter < longest <= length
        # Sources are [CLS] ... [SEP], targets ... [SEP].
        special = tokenizer.special_tokens
        assert set(batch["input_word_ids"][:, 0]) == {special["start_of_sequence_id"]}
        ends = np.take_along_axis(
            batch["targets"], (batch["targets"] != 0).sum(axis=1, keepdims=True) - 1, axis=1
        )
        assert set(ends.ravel()) == {special["end_of_segment_id"]}
    assert len(lengths) > 1


def test_long_texts_are_cut(tokenizer, tmp_path):
    (tmp_path / "de.tsv").write_text("a " * 50 + "\t" + "b " * 50 + "\n", "utf-8")
    directions = directions_of([tmp_path])
    batch = next(laser_batches(SETTINGS, tokenizer, directions, seed=1).as_numpy_iterator())
    end = tokenizer.special_tokens["end_of_segment_id"]
    for name in ("input_word_ids", "targets"):
        assert batch[name].shape == (4, 32)
        assert set(batch[name][:, -1]) == {end}


def test_a_resumed_run_sees_the_batches_that_follow(tokenizer, bitext_dir, monkeypatch):
    directions = directions_of([bitext_dir], languages=["de", "ja"])

    def some(start, end):
        batches = laser_batches(SETTINGS, tokenizer, directions, seed=5, step=start)
        return list(batches.take(end - start).as_numpy_iterator())

    first = some(0, 12)
    monkeypatch.setattr(streams, "SEGMENT", 12)
    second = some(12, 24)
    for whole, rest in ((first, some(7, 12)), (second, some(19, 24))):
        for one, other in zip(whole[7:], rest, strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])
    # Each segment has an order of its own. (Two orders may have the same shapes.)
    orders = [[batch["targets"].tolist() for batch in batches] for batches in (first, second)]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("counts", [(3, 0), (0, 2), (2, 1)])
def test_the_pairs_of_a_batch_are_estimated(tmp_path, tokenizer, counts):
    """Batches of short pairs have 40 rows, of long ones 10."""
    short, long = (" ".join(["cat"] * words) for words in (1, 20))
    lines = [f"{short}\t{short}"] * counts[0] + [f"{long}\t{short}"] * counts[1]
    write_lines(tmp_path / "de.tsv", lines)
    directions = directions_of([tmp_path], targets=["en"])
    found = _pairs_per_batch(tokenizer, directions, np.ones(1), [8, 32], [40, 10])
    share = np.array(counts) / sum(counts)
    assert found == pytest.approx(1 / (share[0] / 40 + share[1] / 10))


def test_held_out_pairs_of_one_name_are_all_measured(tokenizer, bitext_dir, german_dir):
    """English and German are in both kinds of corpora; 48 pairs each."""
    found = read_held_out(SETTINGS, tokenizer, directions_of([bitext_dir], [german_dir]))
    rows = {name: sum(len(one["targets"]) for one in some) for name, some in found.items()}
    assert rows == {f"{code}-en": 48 for code in FOREIGN} | {"en-de": 96, "ja-de": 48}
