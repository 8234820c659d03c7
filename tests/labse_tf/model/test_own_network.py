"""A network of the user's own, named in the configuration, is trained, measured and resumed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from labse_tf.training.validation import RunEmbedder

NETWORK = "encoder.network=toy_network:MeanOfTokens"


def train(config_file, run_dir, *changes):
    options = [f"--set={change}" for change in (NETWORK, *changes)]
    return main(["train", str(config_file), "--run-dir", str(run_dir), *options])


@pytest.mark.slow
def test_it_learns_translations(tmp_path, config_file, bitext_dir):
    run = tmp_path / "run"
    changes = [f"train.dev=[{bitext_dir}]", "train.steps=150", "train.dev_interval=150"]
    changes += ["train.optimizer.learning_rate=0.02", "train.loop.checkpoint_interval=150"]
    assert train(config_file, run, *changes) == 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    (measured,) = (line["held_out"]["retrieval"] for line in lines if "held_out" in line)
    assert measured["accuracy"] > 0.9  # 48 pairs per language: 0.02 by chance.
    run_dir = open_existing(run)
    network = load_encoder(run_dir)
    # The layer of the best checkpoint, against NumPy.
    embedder = RunEmbedder(network, load_tokenizer(run_dir), sequence_length=32)
    ids = load_tokenizer(run_dir).pack([load_tokenizer(run_dir)(["Katze und Haus."])], 32)
    mask = ids["input_mask"].numpy()[0].astype(bool)
    total = network.get_embedding_table().numpy()[ids["input_word_ids"].numpy()[0][mask]].sum(0)
    vector = embedder.encode(["Katze und Haus."])[0]
    np.testing.assert_allclose(vector, total / np.linalg.norm(total), atol=1e-6)


def test_it_is_not_exported_or_pre_trained(tmp_path, config_file, capsys):
    assert train(config_file, tmp_path / "run", "train.steps=2") == 0
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "model")]) == 2
    assert (
        "toy_network:MeanOfTokens, and only bert and bilstm are exported" in capsys.readouterr().err
    )
    options = ["--run-dir", str(tmp_path / "more"), "--set", NETWORK]
    assert main(["pretrain", str(config_file), *options]) == 2
    assert "only BERT can be pre-trained" in capsys.readouterr().err


class NoRows(tf_keras.Model):
    def __init__(self, config):
        super().__init__()

    def get_embedding_table(self) -> tf.Variable:
        return tf.Variable([[0.0]])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("no_such_module:Network", "cannot import no_such_module"),
        ("toy_network:MeanOfWords", "there is no 'MeanOfWords' in toy_network"),
        (f"{__name__}:NoRows", r"returned a NoRows, which has no rows\(\)"),
    ],
)
def test_what_is_no_network_is_refused(network, message):
    with pytest.raises(InputError, match=message):
        build_encoder(EncoderConfig(network=network, vocab_size=5))
