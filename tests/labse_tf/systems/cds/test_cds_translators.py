"""What the translators are given, what they train, how pairs are scored by them, and translated."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines

from labse_tf.cli.main import main
from labse_tf.systems.cds.config import CdsRun
from labse_tf.systems.cds.scorer import (
    TransformerTranslator,
    cds_scores,
    mean_log_likelihoods,
)
from labse_tf.systems.cds.train import encode_pairs, token_log_likelihoods
from labse_tf.systems.laser.translators import open_translator
from labse_tf.tokenization.wordpiece import join_wordpieces
from labse_tf.training.runs.run_dir import open_existing

PAIRS = [
    ("cat and house.", "Katze und Haus.", "de"),
    ("cat and house.", "Haus und Katze.", "de"),
    ("cat and house.", "Katze und Haus.", "fr"),
    ("dog", "犬", "ja"),
    ("wolf and book.", "волк и книга.", "ru"),
    ("horse and bread. " * 20, "Pferd und Brot. " * 20, "de"),
    ("a", "b", "fr"),
]


def test_log_likelihoods_by_hand():
    """Two targets of two tokens and of one: ln 0.5, ln 0.25; ln 0.1."""
    probabilities = [
        [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.9, 0.05, 0.05]],
        [[0.3, 0.6, 0.1], [0.9, 0.05, 0.05], [0.9, 0.05, 0.05]],
    ]
    logits = tf.math.log(tf.constant(probabilities)) + 3.0
    targets = tf.constant([[1, 2, 0], [2, 0, 0]])
    tokens = [[math.log(0.5), math.log(0.25), 0], [math.log(0.1), 0, 0]]
    np.testing.assert_allclose(token_log_likelihoods(logits, targets), tokens, atol=1e-6)
    means = [(math.log(0.5) + math.log(0.25)) / 2, math.log(0.1)]
    np.testing.assert_allclose(mean_log_likelihoods(logits, targets), means, atol=1e-6)
    noisy, trusted = np.array([-2.0, -1.0, -3.0]), np.array([-1.5, -4.0, -3.0])
    np.testing.assert_allclose(cds_scores(noisy, trusted), [0.5, -3.0, 0.0])


@pytest.mark.parametrize(
    ("source", "target", "length"),
    [
        ("a b c", "a b c", 8),
        ("a b c d", "a", 12),  # 9 with [CLS] d ##e [SEP] and [SEP]
        ("a b c", "a b c d e f g", 8),
        ("a b c", "a b c d e f g h", 12),
        ("a", "b " * 40, 12),
    ],
)
def test_pairs_are_tagged_ended_and_padded_to_the_bucket_of_both(tokenizer, source, target, length):
    columns = map(tf.constant, ([source, "ab"], [target, "ab"], ["de", "fr"]))
    ids = encode_pairs(tokenizer, *columns, [8, 12])
    (_, first), (found, second) = (np.array(tokenizer.tokens)[ids[name]] for name in ids)
    expected = ["[CLS]", "f", "##r", "[SEP]", "a", "##b", "[SEP]"]
    assert list(first) == expected + ["[PAD]"] * (length - 7)
    assert list(second) == ["a", "##b", "[SEP]"] + ["[PAD]"] * (length - 3)
    kept = min(len(target.split()), length - 1)
    assert list(found[: kept + 1]) == [*target.split()[:kept], "[SEP]"]
    assert set(found[kept + 1 :]) <= {"[PAD]"}


# The run.


def trained_weights(run, name):
    checkpoint = tf.train.latest_checkpoint(run / "checkpoints" / name)
    names = [key for key, _ in tf.train.list_variables(checkpoint) if "/.ATTRIBUTES" in key]
    names = [key for key in names if key.startswith("translator/")]
    return {key: tf.train.load_variable(checkpoint, key) for key in names}


def test_the_run_trains_both_translators(cds_run, bitext_dir):
    assert {path.name for path in cds_run.iterdir()} == {
        "config.yaml", "vocab.txt", "checkpoints", "tensorboard", "metrics.jsonl", "counts.json",
    }  # fmt: skip
    metrics = (cds_run / "metrics.jsonl").read_text().splitlines()
    steps = [(line["stage"], line["step"]) for line in map(json.loads, metrics)]
    assert steps == [(0, 2), (0, 4), (0, 6), (1, 2), (1, 4)]
    config = open_existing(cds_run).read_config(CdsRun)
    assert config.languages == ["ar", "de", "en", "fr", "ja", "ru", "th"]
    assert config.cds.noisy == [str(bitext_dir)]
    noisy, trusted = (trained_weights(cds_run, name) for name in ("noisy", "trusted"))
    assert set(noisy) == set(trusted) and len(noisy) > 30
    assert all((noisy[key] != trusted[key]).any() for key in noisy if "kernel" in key)


@pytest.mark.slow
def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path, cds_run, train_cds):
    """As a kill leaves it: the last checkpoint that is there is not the last of the run."""
    run = tmp_path / "run"
    shutil.copytree(cds_run, run)
    folder = run / "checkpoints" / "noisy"
    tf.compat.v1.train.update_checkpoint_state(str(folder), str(folder / "ckpt-2"))
    shutil.rmtree(run / "checkpoints" / "trusted")
    assert train_cds(run) == 0
    for name in ("noisy", "trusted"):
        found, expected = (trained_weights(path, name) for path in (run, cds_run))
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-6, err_msg=key)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cds.translator.num_attention_heads=3", "a divisor of"),
        ("cds.bucket_lengths=[16,12]", "ascending"),
        ("cds.batch_size=0", "1 or more"),
        ("cds.trusted_optimizer.clip_norm=-1", "0 or more"),
        ("cds.steps=9", "there is no key 'cds.steps'"),
    ],
)
def test_values_that_no_run_can_work_with(capsys, tmp_path, train_cds, override, message):
    assert train_cds(tmp_path / "run", "--set", override) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()


# Scores.


def test_scores_are_those_of_the_translators_and_do_not_depend_on_the_neighbours(scorer, tokenizer):
    """Against each pair alone, unpadded, a token at a time from the softmax."""
    together = scorer.log_likelihoods(PAIRS)
    assert together.shape == (7, 2) and np.isfinite(together).all() and (together < 0).all()
    # The order of the target and the tag count.
    assert len(np.unique(np.round(together[:3, 0], 5))) == 3
    many = scorer.log_likelihoods(PAIRS[::-1] * 60)
    np.testing.assert_allclose(many[-7:][::-1], together, rtol=0, atol=1e-5)
    assert scorer.log_likelihoods([]).shape == (0, 2)
    for pair, row in zip(PAIRS[:4], together, strict=False):
        np.testing.assert_allclose(scorer.log_likelihoods([pair])[0], row, rtol=0, atol=1e-5)
        ids = encode_pairs(tokenizer, *(tf.constant([text]) for text in pair), [40])
        ids = {name: tensor[:, : np.count_nonzero(tensor)] for name, tensor in ids.items()}
        for translator, expected in zip(scorer._translators, row, strict=True):
            softmax = tf.nn.softmax(translator(ids, training=False)).numpy()[0]
            tokens = ids["targets"].numpy()[0]
            logs = [math.log(softmax[place, token]) for place, token in enumerate(tokens)]
            assert sum(logs) / len(logs) == pytest.approx(expected, abs=1e-5)


# `labse translate`.

TEXTS = ["cat and house.", "", "wolf and moon, horse and bread."]


def greedy(translator, text, language, most):
    """Token by token, each from the logits of all before it: no cache, no search.

    The untrained model never ends a text, so a beam of one does the same.
    """
    columns = [tf.constant([value]) for value in (text, "", language)]
    source = encode_pairs(translator._tokenizer, *columns, [40])["inputs"]
    found = []
    while len(found) < most:
        # The last target is what is asked for; the model shifts targets by one.
        inputs = {"inputs": source, "targets": tf.constant([[*found, 1]])}
        found.append(int(tf.argmax(translator._translator(inputs)[0, -1])))
        if found[-1] == translator._end:
            break
    tokens = translator._tokenizer.tokens
    return join_wordpieces(tokens[one] for one in found if one not in translator._unwritten)


@pytest.mark.slow
def test_a_beam_of_one_takes_the_likeliest_tokens(cds_run):
    translator = open_translator(cds_run, beam_size=1)
    assert isinstance(translator, TransformerTranslator)
    for text, language in ((TEXTS[0], "de"), (TEXTS[2], "ja")):
        tokens = [translator._tokenizer(tf.constant([one])) for one in (language, text)]
        # What the Model Garden allows: the source with its tag and special tokens, and 50 more.
        most = sum(int(one.row_lengths()[0]) for one in tokens) + 3 + 50
        (found,) = translator.translate([text], language)
        assert found == greedy(translator, text, language, most)


def test_translations_come_in_the_order_of_the_texts(cds_run, tmp_path):
    write_lines(tmp_path / "en.txt", TEXTS)
    command = ["translate", str(cds_run), str(tmp_path / "en.txt"), "--beam", "2", "--to"]
    assert main([*command, "de", "--out", str(tmp_path / "de.txt")]) == 0
    assert main([*command, "zh", "--out", str(tmp_path / "zh.txt")]) == 2
    lines = (tmp_path / "de.txt").read_text("utf-8").split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == ""
    wide = open_translator(cds_run, beam_size=2).translate(TEXTS[::-1], "de")
    np.testing.assert_array_equal(wide[::-1], lines[:3])
