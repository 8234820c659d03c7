"""Batches for pre-training: full MLM sequences, TLM in either order, a function of the seed."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines

from labse_tf.data import streams
from labse_tf.data.pretraining import _join, pretraining_batches
from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines, read_pairs

PADDING, START, END, MASK = 0, 101, 102, 103


@pytest.fixture(autouse=True)
def little_shuffling(monkeypatch):
    """Thousands of sequences are shuffled: here, where there are hundreds, fewer."""
    monkeypatch.setattr("labse_tf.data.pretraining._SHUFFLED_SEQUENCES", 200)


def batches_of(config, tokenizer, **kwargs):
    settings = {"languages": config.languages, "seed": config.seed}
    return pretraining_batches(config.pretrain, tokenizer, **settings, **kwargs)


def configured(config, **changes):
    seed = changes.pop("seed", config.seed)
    languages = changes.pop("languages", config.languages)
    pretrain = dataclasses.replace(config.pretrain, **changes)
    return dataclasses.replace(config, seed=seed, languages=languages, pretrain=pretrain)


def take(dataset, count):
    return [{name: value.numpy() for name, value in batch.items()} for batch in dataset.take(count)]


def assert_equal(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert set(left) == set(right)
        for name in left:
            np.testing.assert_array_equal(left[name], right[name])


def unmasked(batch):
    """The ids before anything was hidden."""
    ids = batch["input_word_ids"].copy()
    rows, columns = np.nonzero(batch["masked_weights"])
    ids[rows, batch["masked_positions"][rows, columns]] = batch["masked_ids"][rows, columns]
    return ids


def test_seed_and_stage_give_the_order(tiny_config, tokenizer):
    config = configured(tiny_config, languages=["th"], tlm_fraction=0.0)
    first_ids = [
        take(batches_of(changed, tokenizer, stage=stage), 1)[0]["input_word_ids"]
        for changed, stage in ((config, 0), (config, 1), (configured(config, seed=8), 0))
    ]
    assert len({ids.tobytes() for ids in first_ids}) == 3


def test_skipping_is_leaving_out(tiny_config, tokenizer):
    """30 batches are more than an epoch of the two languages."""
    config = configured(tiny_config, languages=["de", "th"])
    whole = take(batches_of(config, tokenizer, stage=0), 32)
    for skip in (0, 30):
        found = take(batches_of(config, tokenizer, stage=0, step=skip), 2)
        assert_equal(found, whole[skip : skip + 2])


@pytest.mark.parametrize("tlm_fraction", [0.0, 0.5, 1.0])
def test_a_segment_is_read_anew_and_from_any_of_its_steps(
    tiny_config, tokenizer, monkeypatch, tlm_fraction
):
    monkeypatch.setattr(streams, "SEGMENT", 4)
    config = configured(tiny_config, languages=["de", "th"], tlm_fraction=tlm_fraction)
    first, second = (take(batches_of(config, tokenizer, stage=0, step=at), 4) for at in (0, 4))
    assert all((one["input_word_ids"] != other["input_word_ids"]).any() for one, other in
               zip(first, second, strict=True))  # fmt: skip
    assert_equal(take(batches_of(config, tokenizer, stage=0, step=6), 2), second[2:])


def test_mlm_goes_on_where_it_is_expected_to_be(tmp_path, tiny_config, tokenizer, monkeypatch):
    """As many sentences as the tokens of ten batches make."""
    sentence = "cat and house and house."
    tokens = len(tokenizer(tf.constant([sentence]))[0])
    drawn = []
    monkeypatch.setattr(streams, "SEGMENT", 10)
    monkeypatch.setattr(streams, "drawn_of", lambda weights, count: drawn.append(count) or {})
    write_lines(tmp_path / "en.txt", [sentence] * 100)
    changes = {"monolingual": [str(tmp_path)], "tlm_fraction": 0.0, "languages": []}
    config = configured(tiny_config, **changes)
    batches_of(config, tokenizer, stage=0, step=14)
    body = config.pretrain.sequence_length - 2
    assert drawn == [10 * config.pretrain.batch_size * body / tokens]


def test_mlm_has_no_padding_and_one_language_a_sequence(tiny_config, tokenizer):
    config = configured(tiny_config, tlm_fraction=0.0, languages=["th", "ru"])
    scripts_seen = set()
    for batch in take(batches_of(config, tokenizer, stage=0), 60):
        assert (batch["input_mask"] == 1).all()
        assert (batch["input_type_ids"] == 0).all()
        ids = unmasked(batch)
        assert (ids[:, 0] == START).all() and (ids[:, -1] == END).all()
        assert not np.isin(ids[:, 1:-1], [PADDING, START, END, MASK]).any()
        for row in ids:
            letters = "".join(tokenizer.tokens[token].removeprefix("##") for token in row[1:-1])
            scripts = {ord(letter) >> 8 for letter in letters if letter.isalpha()}
            assert len(scripts) == 1
            scripts_seen |= scripts
    assert scripts_seen == {0x0E, 0x04}


def test_mlm_sequences_are_running_text(tiny_config, tokenizer, monolingual_dir):
    """Sentences end to end: every window of a sequence between two full stops is a sentence."""
    config = configured(tiny_config, tlm_fraction=0.0, languages=["ru"], sequence_length=64)
    stop = tokenizer.tokens.index(".")
    sentences = [line for _, line in read_lines(monolingual_dir / "ru.txt")]
    known = {tuple(ids) for ids in tokenizer(tf.constant(sentences)).to_list()}
    found = set()
    for batch in take(batches_of(config, tokenizer, stage=0), 6):
        for row in unmasked(batch)[:, 1:-1]:
            stops = np.flatnonzero(row == stop)
            for first, last in zip(stops, stops[1:], strict=False):
                sentence = tuple(row[first + 1 : last + 1])
                assert sentence in known
                found.add(sentence)
    assert len(found) > 20


def test_tlm_packs_both_sides_in_either_order(tiny_config, tokenizer, bitext_dir):
    config = configured(tiny_config, tlm_fraction=1.0, languages=["ru"], sequence_length=64)
    pairs = [pair for _, *pair in read_pairs(bitext_dir / "ru.tsv")]
    sides = [
        [tuple(ids) for ids in tokenizer(tf.constant(side)).to_list()]
        for side in zip(*pairs, strict=True)
    ]
    straight = set(zip(*sides, strict=True))
    swapped = {(target, source) for source, target in straight}
    counts = [0, 0]
    for batch in take(batches_of(config, tokenizer, stage=0), 24):
        for ids, mask, types in zip(
            unmasked(batch), batch["input_mask"], batch["input_type_ids"], strict=True
        ):
            ids, types = ids[mask == 1], types[mask == 1]
            first, second = np.flatnonzero(ids == END)
            assert ids[0] == START and second == len(ids) - 1
            np.testing.assert_array_equal(types, np.arange(len(ids)) > first)
            pair = tuple(ids[1:first]), tuple(ids[first + 1 : second])
            assert pair in straight or pair in swapped
            counts[pair in swapped] += 1
    total = sum(counts)
    assert abs(counts[0] - total / 2) < 5 * np.sqrt(total / 4)


def test_packed_pairs_stay_whole_and_fill_their_sequences(tiny_config, tokenizer, bitext_dir):
    """Each as it would be in a sequence of its own, with positions from 0."""
    languages = ["ru", "th"]
    config = configured(
        tiny_config, tlm_fraction=1.0, languages=languages, sequence_length=120, pack_pairs=True
    )
    known = {}
    for language in languages:
        rows = [pair for _, *pair in read_pairs(bitext_dir / f"{language}.tsv")]
        sides = [tokenizer(tf.constant(side)).to_list() for side in zip(*rows, strict=True)]
        for one, other in zip(*(map(tuple, side) for side in sides), strict=True):
            known[one, other] = known[other, one] = language
    seen, filled = Counter(), []
    for batch in take(batches_of(config, tokenizer, stage=0), 12):
        filled.append(batch["input_mask"].mean())
        names = ("input_mask", "input_type_ids", "input_positions")
        for ids, mask, types, positions in zip(
            unmasked(batch), *(batch[name] for name in names), strict=True
        ):
            length = mask.sum()
            assert mask[:length].all() and not (types[length:].any() or positions[length:].any())
            starts = np.flatnonzero(positions[:length] == 0)
            np.testing.assert_array_equal(starts, np.flatnonzero(ids == START))
            for start, end in itertools.pairwise([*starts, length]):
                np.testing.assert_array_equal(positions[start:end], np.arange(end - start))
                first, second = (start + np.flatnonzero(ids[start:end] == END)).tolist()
                assert second == end - 1
                np.testing.assert_array_equal(types[start:end], np.arange(start, end) > first)
                pair = tuple(ids[start + 1 : first]), tuple(ids[first + 1 : second])
                seen[known[pair]] += 1
    assert set(seen) == set(languages)
    assert np.mean(filled) > 0.75


def test_packed_pairs_stand_in_batches_of_both_tasks(tiny_config, tokenizer):
    config = configured(tiny_config, languages=["de"], sequence_length=100, pack_pairs=True)
    tasks = set()
    for batch in take(batches_of(config, tokenizer, stage=0), 12):
        is_tlm = batch["input_type_ids"].any()
        tasks.add(is_tlm)
        if not is_tlm:
            expected = np.broadcast_to(np.arange(100), batch["input_positions"].shape)
            np.testing.assert_array_equal(batch["input_positions"], expected)
    assert tasks == {False, True}


def test_which_sequences_are_joined():
    """Lengths 3, 2, 2, 4, 1 in rows of 5: (3, 2), (2), (4, 1); the last row is dropped."""
    lengths = [3, 2, 2, 4, 1]
    ids = [[number] * length + [9] * (5 - length) for number, length in enumerate(lengths, 1)]
    mask = [[1] * length + [0] * (5 - length) for length in lengths]
    sequences = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": mask}
    sequences |= {"file": [10, 11, 12, 13, 14]}
    joined = _join({name: tf.constant(rows) for name, rows in sequences.items()}, padding_id=9)
    assert joined["input_word_ids"].numpy().tolist() == [[1, 1, 1, 2, 2], [3, 3, 9, 9, 9]]
    assert joined["input_mask"].numpy().tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
    assert joined["input_type_ids"].numpy().tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
    assert joined["input_positions"].numpy().tolist() == [[0, 1, 2, 0, 1], [0, 1, 0, 0, 0]]
    assert joined["file"].numpy().tolist() == [10, 12]


def test_both_tasks_come_in_their_shares(tiny_config, tokenizer):
    config = configured(tiny_config, tlm_fraction=0.25, languages=["de", "th"])
    batches = take(batches_of(config, tokenizer, stage=0), 200)
    tlm = sum(int(batch["input_type_ids"].any()) for batch in batches)
    assert abs(tlm - 50) < 5 * np.sqrt(200 * 0.25 * 0.75)


def test_shapes_and_that_only_ordinary_tokens_are_predicted(tiny_config, tokenizer):
    config = configured(tiny_config, languages=["de", "th"])
    for batch in take(batches_of(config, tokenizer, stage=0), 12):
        for name in ("input_word_ids", "input_mask", "input_type_ids"):
            assert batch[name].shape == (8, 24) and batch[name].dtype == np.int32
        for name in ("masked_positions", "masked_ids", "masked_weights"):
            assert batch[name].shape == (8, 5)
        chosen = batch["masked_weights"] == 1.0
        assert chosen.any(axis=1).all()
        assert (batch["masked_ids"][chosen] > MASK).all()
        # 20 % of 22 ordinary tokens at most.
        assert chosen.sum(axis=1).max() <= 4


def test_every_batch_is_masked_afresh(tiny_config, tokenizer):
    config = configured(tiny_config, tlm_fraction=0.0, languages=["de"])
    batches = take(batches_of(config, tokenizer, stage=0), 10)
    assert len({batch["masked_positions"].tobytes() for batch in batches}) == 10


@pytest.mark.parametrize("kind", ["monolingual", "bitext"])
def test_missing_data_name_the_key(tiny_config, tokenizer, kind):
    with pytest.raises(InputError) as caught:
        batches_of(configured(tiny_config, **{kind: []}), tokenizer, stage=0)
    assert f"'pretrain.{kind}' is empty" in str(caught.value)


@pytest.mark.slow
def test_a_task_without_share_needs_no_data(tiny_config, tokenizer):
    no_bitext = configured(tiny_config, bitext=[], tlm_fraction=0.0)
    no_text = configured(tiny_config, monolingual=[], tlm_fraction=1.0)
    for config in (no_bitext, no_text):
        assert len(take(batches_of(config, tokenizer, stage=0), 1)) == 1
