"""What a model dir tells of a model: of each kind of training, and when it is exported again."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.embedding.open import open_encoder


def export(source, out, *more):
    assert main(["export", str(source), "--out", str(out), "--no-verify", *more]) == 0
    return json.loads((out / "model.json").read_text("utf-8")), (out / "README.md").read_text(
        "utf-8"
    )


def test_a_dual_encoder(model_dir):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["training"]["kind"] == "dual encoder"
    assert (facts["training"]["steps"], facts["training"]["bitext"]) == (4, ["bitext"])
    card = (model_dir / "README.md").read_text("utf-8")
    assert "4 steps of 8 pairs, additive margin softmax with margin 0.3 and scale 10.0" in card
    assert "Data: bitext." in card and "not stated: ask whoever published it" in card


def test_leading_columns(model_dir, config_file, static_run, tmp_path):
    """They are told if they were trained; and stay so when the model is exported again."""
    assert "columns" not in (model_dir / "README.md").read_text("utf-8")
    for dims, expected in (("[8,4]", [16, 8, 4]), ("[16]", None)):
        run, out = tmp_path / f"run_{len(dims)}", tmp_path / f"model_{len(dims)}"
        sets = ("encoder.num_layers=0", "encoder.pooling=mean", "train.steps=2")
        options = [word for one in (*sets, f"train.matryoshka={dims}") for word in ("--set", one)]
        command = ["train", str(config_file), "--init", str(static_run), "--run-dir", str(run)]
        assert main([*command, *options]) == 0
        facts, card = export(run, out, "--format", "hub")
        assert facts["training"].get("matryoshka") == expected
        assert ("vectors have 16 dimensions" in card) == bool(expected)
    facts, card = export(tmp_path / "model_5", tmp_path / "again", "--format", "hub")
    assert facts["training"]["matryoshka"] == [16, 8, 4]
    assert "their first 8 or 4 columns" in card and "[:, :4], 1)`" in card
    vectors = open_encoder(tmp_path / "again", dim=4).encode(["Hello", "Hallo"])
    full = open_encoder(tmp_path / "again").encode(["Hello", "Hallo"])[:, :4]
    full /= np.linalg.norm(full, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, full, atol=1e-6)


@pytest.fixture(scope="module")
def pretrained(pretrained_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrained") / "model"
    return out, *export(pretrained_run, out, "--licence", "CC BY 4.0", "--format", "hub")


@pytest.mark.slow
def test_a_pretrained_encoder(pretrained):
    _, facts, card = pretrained
    # Two stages of three steps.
    assert (facts["training"]["kind"], facts["training"]["steps"]) == ("pre-training", 6)
    assert "6 steps of 8 sequences of MLM and TLM" in card
    assert "margin" not in card and "Data: monolingual, bitext." in card


def test_its_masked_language_model_and_its_licence_stay(pretrained, pretrained_run, tmp_path):
    model, _, _ = pretrained
    facts, card = export(model, tmp_path / "again", "--length", "32", "--format", "hub")
    assert facts["licence"] == "CC BY 4.0" and "CC BY 4.0" in card
    assert facts["sequence_length"] == 32
    ids = tf.constant([[101, 110, 103, 112, 102]])
    inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
    inputs["masked_lm_positions"] = tf.constant([[2, 0]])
    logits = []
    for folder in (model, tmp_path / "again"):
        encoder = tf.saved_model.load(str(folder / "encoder"))
        outputs = encoder.mlm(inputs)
        assert set(outputs) == {
            "mlm_logits", "pooled_output", "sequence_output", "encoder_outputs",
        }  # fmt: skip
        # It is no part of what is trained as the encoder.
        assert not any("mlm_head" in variable.name for variable in encoder.trainable_variables)
        logits.append(outputs["mlm_logits"].numpy())
    assert logits[0].shape == (1, 2, facts["encoder"]["vocab_size"])
    np.testing.assert_array_equal(*logits)
