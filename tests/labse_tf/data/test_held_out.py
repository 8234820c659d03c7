"""Held-out loss and accuracy: what is asked, and that runs tell it by language."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_text import FOREIGN, sentences_of

from labse_tf.cli.main import main
from labse_tf.data.held_out import read_held_out
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head
from labse_tf.training.validation import HeldOutEvaluator

START, END = 101, 102


def configured(config, languages=(), **changes):
    pretrain = dataclasses.replace(config.pretrain, **{"sequence_length": 48, **changes})
    return dataclasses.replace(config, languages=list(languages), pretrain=pretrain)


@pytest.fixture
def examples(tiny_config, tokenizer, bitext_dir):
    config = configured(tiny_config, held_out=[str(bitext_dir)], held_out_size=9)
    return read_held_out(config.pretrain, tokenizer, config.languages)


def test_both_tasks_ask_for_the_same_tokens_of_the_foreign_side(examples, tokenizer):
    mlm, tlm = examples["mlm"], examples["tlm"]
    for name in ("masked_ids", "masked_weights"):
        np.testing.assert_array_equal(mlm.rows[name], tlm.rows[name])
    assert list(mlm.languages) == list(tlm.languages) == [f for f in FOREIGN for _ in range(9)]
    ids = dict(zip(("en", *FOREIGN), map(ids_of(tokenizer), ("en", *FOREIGN)), strict=True))
    for index, language in enumerate(mlm.languages):
        english, foreign = (ids[side][index % 9] for side in ("en", language))
        assert restored_row(mlm, index) == [START, *foreign, END]
        assert restored_row(tlm, index) == [START, *english, END, *foreign, END]
        types = tlm.rows["input_type_ids"][index][tlm.rows["input_mask"][index] == 1]
        assert list(types) == [0] * (len(english) + 2) + [1] * (len(foreign) + 1)


def ids_of(tokenizer):
    return lambda language: tokenizer(tf.constant(sentences_of(language))).to_list()


def restored_row(examples, index):
    """The row's ids with the hidden tokens put back where they are asked for."""
    row = {name: values[index] for name, values in examples.rows.items()}
    ids = row["input_word_ids"].copy()
    chosen = row["masked_weights"] == 1.0
    assert chosen.any() and (row["masked_positions"][~chosen] == 0).all()
    ids[row["masked_positions"][chosen]] = row["masked_ids"][chosen]
    return list(ids[row["input_mask"] == 1])


def test_sentences_alone_are_asked_of_mlm(tiny_config, tokenizer, monolingual_dir):
    config = configured(tiny_config, held_out=[str(monolingual_dir)], languages=["th", "en"])
    examples = read_held_out(config.pretrain, tokenizer, config.languages)
    assert set(examples) == {"mlm"} and set(examples["mlm"].languages) == {"th", "en"}


def test_shards_of_a_language_count_together(tiny_config, tokenizer, tmp_path):
    for part, rows in enumerate((4, 3)):
        folder = tmp_path / f"part{part}"
        folder.mkdir()
        lines = sentences_of("de")[10 * part : 10 * part + rows]
        (folder / "de.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    folders = [str(tmp_path / f"part{part}") for part in range(2)]
    config = configured(tiny_config, held_out=folders, held_out_size=6)
    assert (
        list(read_held_out(config.pretrain, tokenizer, config.languages)["mlm"].languages)
        == ["de"] * 6
    )


def test_what_is_too_long_is_left_out(tiny_config, tokenizer, tmp_path):
    (tmp_path / "de.txt").write_text("Hund und Katze. " * 40 + "\nHund.\n", "utf-8")
    config = configured(tiny_config, held_out=[str(tmp_path)])
    assert len(read_held_out(config.pretrain, tokenizer, config.languages)["mlm"].languages) == 1
    (tmp_path / "de.txt").write_text("Hund und Katze. " * 40 + "\n", "utf-8")
    with pytest.raises(InputError, match="no sentence that fits"):
        read_held_out(config.pretrain, tokenizer, config.languages)


def test_means_by_language_equal_numpy(tiny_config, examples):
    encoder = build_encoder(tiny_config.encoder)
    head = build_mlm_head(tiny_config.encoder, encoder)
    strategy = tf.distribute.get_strategy()
    evaluator = HeldOutEvaluator(strategy=strategy, encoder=encoder, head=head, examples=examples)
    measured = evaluator.evaluate(tf.constant(1))
    for task, (languages, rows) in examples.items():
        inputs = {name: tf.constant(rows[name]) for name in encoder.inputs}
        logits = head(encoder(inputs)["sequence_output"], tf.constant(rows["masked_positions"]))
        logits = logits.numpy().astype(np.float64)
        of_label = np.take_along_axis(logits, rows["masked_ids"][..., None], axis=2)[..., 0]
        losses = np.log(np.exp(logits).sum(axis=2)) - of_label
        hits = logits.argmax(axis=2) == rows["masked_ids"]
        for language, chosen in [("de", languages == "de"), (None, slice(None))]:
            found = measured[task]["by_language"][language] if language else measured[task]
            weights = rows["masked_weights"][chosen]
            assert found["tokens"] == weights.sum()
            expected = (losses[chosen] * weights).sum() / weights.sum()
            assert found["loss"] == pytest.approx(expected, rel=1e-5)
            expected = (hits[chosen] * weights).sum() / weights.sum()
            assert found["accuracy"] == pytest.approx(expected)


def test_batches_have_one_shape_and_lose_no_row(examples):
    # 2**28 bytes of logits for 4 predictions: 2 rows a batch.
    predictions = examples["mlm"].rows["masked_ids"].shape[1]
    batches = list(examples["mlm"].batches(2**28 // (4 * predictions * 4)))
    assert {batch["masked_ids"].shape for batch in batches} == {(4, predictions)}
    weights = np.concatenate([batch["masked_weights"] for batch in batches])
    np.testing.assert_array_equal(weights[:54], examples["mlm"].rows["masked_weights"])
    assert not weights[54:].any()


@pytest.mark.slow
def test_a_run_tells_it(tmp_path, config_file, bitext_dir):
    arguments = ["pretrain", str(config_file), "--run-dir", str(tmp_path / "run")]
    settings = {
        "encoder.num_layers": 2,
        "pretrain.stage_steps": [5, 2],
        "pretrain.sequence_length": 48,
        "pretrain.held_out": [str(bitext_dir)],
        "pretrain.held_out_interval": 2,
        "languages": ["de", "th"],
    }
    sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    assert main([*arguments, *sets]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    told = [line for line in lines if "held_out" in line]
    assert [(line["stage"], line["step"]) for line in told] == [(0, 2), (0, 4), (0, 5), (1, 2)]
    for line in told:
        assert set(line["held_out"]) == {"mlm", "tlm"}
        for measured in line["held_out"].values():
            assert set(measured["by_language"]) == {"de", "th"}
            assert measured["loss"] > 0 and 0 <= measured["accuracy"] <= 1
    events = list((tmp_path / "run/tensorboard/stage_1/held_out").rglob("events*"))
    assert events
