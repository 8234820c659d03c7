"""Students without layers: what they start with, and that they come nearer to their teacher."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

import labse_tf
from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.model.static_encoder import Subwords
from labse_tf.systems.distill.start import start_static, token_shares, token_vectors
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from labse_tf.training.validation import RunEmbedder


def teacher_of(tokenizer):
    """The vector of a text has its sum of ids, and 1."""

    def teacher(inputs):
        ids = tf.cast(inputs["input_word_ids"] * inputs["input_mask"], tf.float32)
        total = tf.reduce_sum(ids, axis=1)
        return {"default": tf.stack([total, tf.ones_like(total)], axis=1)}

    return teacher


def test_tokens_are_embedded_as_texts(tokenizer):
    vectors = token_vectors(teacher_of(tokenizer), tokenizer)
    special = tokenizer.special_tokens
    ends = special["start_of_sequence_id"] + special["end_of_segment_id"]
    expected = np.stack([ends + np.arange(len(tokenizer.tokens)), np.ones(len(vectors))], axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-5)


@pytest.mark.parametrize("lengths", [(), (1, 3)])
def test_frequent_tokens_count_less(tokenizer, lengths):
    texts = ["Katze und Haus.", "Katze und Baum.", "猫と家。"]
    shares = token_shares(tokenizer, texts)
    ids = tokenizer(tf.constant(texts)).values.numpy()
    often = np.bincount(ids).argmax()
    assert shares.sum() == pytest.approx(1)
    assert shares[often] == pytest.approx((ids == often).sum() / len(ids))
    sizes = EncoderConfig(vocab_size=len(tokenizer.tokens), hidden_size=4, num_layers=0)
    subwords = Subwords(tokenizer.tokens, lengths) if lengths else None
    encoder = build_encoder(sizes, subwords=subwords)
    projection = np.eye(2, 4, dtype=np.float32)
    common = {"teacher": teacher_of(tokenizer), "tokenizer": tokenizer, "texts": texts}
    start_static(encoder, subwords, projection=projection, **common)
    table = encoder.get_embedding_table().numpy()
    table = subwords.fold(table) if subwords else table
    lengths_of_rows = np.linalg.norm(table, axis=1)
    np.testing.assert_allclose(lengths_of_rows, 1e-3 / (1e-3 + shares), rtol=1e-5)
    assert not table[:, 2:].any()


@pytest.mark.slow
def test_a_student_comes_nearer(tmp_path, config_file, model_dir, monolingual_dir):
    sets = {
        "encoder.num_layers": 0,
        "encoder.subwords": "[1,3]",
        "tokenizer.vocab_file": "",
        "pretrain.stage_steps": "[1]",
        "languages": "[de,ja]",
        "distill.monolingual": f"[{monolingual_dir}]",
        "train.steps": 60,
        "train.loop.log_interval": 20,
        "train.bucket_lengths": "[16,32]",
        "train.optimizer.table_update": "adagrad",
        "train.optimizer.learning_rate": 0.003,
    }
    run = tmp_path / "run"
    options = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command = ["distill", str(config_file), "--teacher", str(model_dir), "--run-dir", str(run)]
    assert main([*command, *options]) == 0
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    losses = [line["loss"] for line in map(json.loads, lines) if "loss" in line]
    assert losses[-1] < 0.9 * losses[0], losses
    run_dir = open_existing(run)
    network, tokenizer = load_encoder(run_dir), load_tokenizer(run_dir)
    # Layers could be put on top of it.
    assert np.abs(network.get_embedding_table().numpy()[:, -2:]).max() < 1e-6
    texts = ["Katze und Haus.", "猫と家。"]
    vectors = RunEmbedder(network, tokenizer, sequence_length=32).encode(texts)
    projection = np.load(run / "projection.npy", allow_pickle=False)
    wanted = labse_tf.load(model_dir).encode(texts) @ projection
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    assert (vectors * wanted).sum(axis=1).min() > 0.8
