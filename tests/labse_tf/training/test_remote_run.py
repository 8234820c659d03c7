"""A run whose files are all in a store: TensorFlow's own, in memory, stands for gs://."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import numpy as np
import pytest
from runs import assert_same_weights, embedder_of
from text_files import content_of, write_lines

import labse_tf
from labse_tf.cli.main import EXIT_INPUT, EXIT_INTERRUPTED, main
from labse_tf.files import staging, stores
from labse_tf.training.fit import Trainer

SETTINGS = {
    "train.steps": 4,
    "train.loop.checkpoint_interval": 2,
    "train.loop.checkpoints_kept": 1,
    "train.loop.log_interval": 2,
    "train.dev_interval": 2,
    "encoder.num_layers": 1,
    "pretrain.stage_steps": "[1]",
    "languages": "[de]",
}
SENTENCES = ["Der Fluss ist breit.", "A house by the river.", ""]


@pytest.fixture(scope="module")
def both(tmp_path_factory, bitext_dir, config_file, vocab_file):
    """The same files on disk and in the store: pairs, vocabulary, configuration."""
    disk, store = tmp_path_factory.mktemp("disk"), f"ram://{uuid.uuid4()}/work"
    (disk / "pairs").mkdir()
    shutil.copy(bitext_dir / "de.tsv", disk / "pairs")
    shutil.copy(vocab_file, disk / "vocab.txt")
    shutil.copy(config_file, disk / "config.yaml")
    write_lines(disk / "sentences.txt", SENTENCES)
    for name in content_of(disk):
        stores.send(disk / name, f"{store}/{name}")
    return str(disk), store


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """Returns a function that goes to another machine, where nothing was copied yet."""
    monkeypatch.setenv(staging.FOLDER, str(tmp_path / "first"))
    return lambda name: monkeypatch.setenv(staging.FOLDER, str(tmp_path / name))


def train(folder, *more, inputs=None):
    inputs = inputs or folder
    sets = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    sets += [f"--set=train.{key}=[{inputs}/pairs]" for key in ("bitext", "dev")]
    sets += [f"--set=tokenizer.vocab_file={inputs}/vocab.txt", *more]
    return main(["train", f"{inputs}/config.yaml", "--run-dir", f"{folder}/run", *sets])


@pytest.mark.slow
def test_from_pairs_to_vectors_it_is_the_run_on_disk(both, machine, monkeypatch, caplog):
    disk, store = both
    assert train(disk) == 0
    end = Trainer.train_loop_end

    def interrupted(trainer):
        if int(trainer._optimizer.iterations.numpy()) > 3:
            raise KeyboardInterrupt
        return end(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_loop_end", interrupted)
        assert train(store) == EXIT_INTERRUPTED
    there = stores.list_files(f"{store}/run/checkpoints")
    assert "/ckpt-2.index" in there and "/ckpt-4.index" not in there
    assert not any("temp" in name for name in there)
    machine("second")
    caplog.set_level("INFO", "labse")
    assert train(store) == 0
    assert "2 of 4 steps already done" in caplog.text
    there = stores.list_files(f"{store}/run")
    # Only one is kept, there as here.
    found = sorted(name for name in there if name.endswith(".index") and "best" not in name)
    assert found == ["/checkpoints/ckpt-4.index"]
    assert "/checkpoints/best/best.json" in there
    lines = stores.read(f"{store}/run/metrics.jsonl").splitlines()
    with open(f"{disk}/run/metrics.jsonl", encoding="utf-8") as file:
        for line, expected in zip(lines, file, strict=True):
            line, expected = json.loads(line), json.loads(expected)
            assert (line["step"], line.get("loss")) == (expected["step"], expected.get("loss"))
    machine("third")
    model, out = f"{store}/model", f"{store}/vectors.npy"
    assert main(["export", f"{store}/run", "--out", model, "--format", "hub"]) == 0
    assert main(["embed", model, f"{store}/sentences.txt", "--out", out]) == 0
    vectors = np.load(staging.input_path(out))
    np.testing.assert_array_equal(labse_tf.load(model).encode(SENTENCES), vectors)
    np.testing.assert_allclose(embedder_of(Path(disk, "run")).encode(SENTENCES), vectors, atol=1e-5)
    runs = (Path(staging.input_path(f"{folder}/run")) for folder in both)
    assert_same_weights(*(run / "checkpoints" / "ckpt-4" for run in runs), least=10)


def test_what_is_there_is_refused_by_its_url(both, capsys):
    disk, _ = both
    store = f"ram://{uuid.uuid4()}"
    stores.write(f"{store}/v.npy", "vectors")
    stores.write(f"{store}/run/notes.txt", "no run")
    command = ["embed", f"{disk}/none", f"{disk}/sentences.txt", "--out", f"{store}/v.npy"]
    assert main(command) == EXIT_INPUT
    assert f"{store}/v.npy: the output exists already" in capsys.readouterr().err
    assert train(store, inputs=disk) == EXIT_INPUT
    assert f"{store}/run: the folder is not empty" in capsys.readouterr().err
    assert stores.list_files(f"{store}/run").keys() == {"/notes.txt"}
    # A run that cannot start leaves nothing.
    store = f"ram://{uuid.uuid4()}"
    more = ("--set=train.batch_size=999983", "--set=train.chunk_size=2")
    assert train(store, *more, inputs=disk) == EXIT_INPUT
    assert "chunk" in capsys.readouterr().err
    assert stores.list_files(f"{store}/run") == {}
