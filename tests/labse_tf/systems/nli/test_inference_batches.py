"""Batches of pairs for inference: languages drawn anew, each pair once a pass."""

from __future__ import annotations

import collections

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from text_files import write_lines

from labse_tf.evaluation.texts import InferencePairs, labels_of, read_inference_pairs
from labse_tf.systems.nli.config import NliConfig
from labse_tf.systems.nli.train import _draws, inference_batches


def numbered(languages, size, label="x"):
    texts = {code: [(f"{code}p{i}", f"{code}h{i}") for i in range(size)] for code in languages}
    return InferencePairs(texts, [f"{label}{i % 2}" for i in range(size)])


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    batch_size=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_each_pass_has_every_pair_once_in_two_languages(sizes, batch_size, seed):
    sets = [numbered(["de", "ru", "sw"][: 1 + place], size) for place, size in enumerate(sizes)]
    total = sum(sizes)
    draws = _draws(sets, batch_size, seed=seed, step=0)
    flat = []
    while len(flat) < 3 * total:
        flat += next(draws)
    expected = [(f"p{i}", label) for pairs in sets for i, label in enumerate(pairs.labels)]
    for start in (0, total, 2 * total):
        one_pass = [(premise[2:], label) for premise, _, label in flat[start : start + total]]
        assert collections.Counter(one_pass) == collections.Counter(expected)
    assert all(premise[3:] == hypothesis[3:] for premise, hypothesis, _ in flat)


def test_all_pairs_of_languages_are_drawn_and_none_twice_the_same():
    draws = _draws([numbered(["de", "ru", "sw"], 5)], 300, seed=1, step=0)
    found = collections.Counter((one[:2], other[:2]) for one, other, _ in next(draws))
    assert len(found) == 6 and all(one != other for one, other in found)
    # Each of 6 has 50 of 300, give or take four standard deviations.
    assert all(abs(count - 50) < 4 * (300 * 5 / 36) ** 0.5 for count in found.values())


def test_resuming_repeats_the_batches(tmp_path, tokenizer):
    for language, text in (("de", "Es regnet.\tEs schneit."), ("th", "ฝนตก\tหิมะตก")):
        rows = [f"{text}\tentailment", f"{text}\tneutral"]
        write_lines(tmp_path / f"train.{language}.tsv", rows)
    sets = [read_inference_pairs(str(tmp_path)), numbered(["fr"], 5, "neutral")]
    settings_ = NliConfig(batch_size=4, sequence_length=16)
    whole = list(inference_batches(sets, tokenizer, settings_, seed=2).take(6).as_numpy_iterator())
    for skip in (1, 4):
        later = inference_batches(sets, tokenizer, settings_, seed=2, step=skip).take(2)
        for found, expected in zip(later.as_numpy_iterator(), whole[skip:], strict=False):
            for name in ("premise", "hypothesis"):
                ids = found[name]["input_word_ids"]
                assert ids.shape == (4, 16)
                np.testing.assert_array_equal(ids, expected[name]["input_word_ids"])
            np.testing.assert_array_equal(found["label"], expected["label"])
    labels = labels_of(sets)
    assert labels == ["entailment", "neutral", "neutral0", "neutral1"]
    assert {int(one) for batch in whole for one in batch["label"]} == set(range(4))
