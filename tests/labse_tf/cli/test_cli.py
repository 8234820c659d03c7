"""The command line: one line for every fault of the user's, and nothing left behind."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from command_line import refused, run

import labse_tf


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_embed_what_cannot_be_read_or_written(capsys, tmp_path, model_dir):
    for name, data, problem in (
        ("none.txt", None, "no such file"),
        ("empty.txt", b"", "the file is empty"),
        ("latin.txt", "eins\nGröße\n".encode("latin-1"), "latin.txt:2: invalid UTF-8"),
        ("cut.txt.gz", b"\x1f\x8b\x08\x00\x00", "cut.txt.gz:1: the compressed file is damaged"),
    ):
        if data is not None:
            (tmp_path / name).write_bytes(data)
        error = refused(capsys, "embed", model_dir, tmp_path / name, "--out", tmp_path / "out.npy")
        assert error.startswith(str(tmp_path / name)) and problem in error
    (tmp_path / "in.txt").write_text("Hallo\n")
    arguments = (tmp_path / "in.txt", "--out", tmp_path / "out.npy")
    error = refused(capsys, "embed", tmp_path, *arguments)
    assert error.startswith(f"{tmp_path}: is not a model")
    (tmp_path / "out.npy").write_text("mine")
    assert "exists already" in refused(capsys, "embed", model_dir, *arguments)
    assert files(tmp_path) == {"empty.txt", "latin.txt", "cut.txt.gz", "in.txt", "out.npy"}
    assert (tmp_path / "out.npy").read_text() == "mine"


def test_what_training_refuses(capsys, monkeypatch, tmp_path, config_file, vocab_file):
    """A broken vocabulary, a wrong configuration, a strategy or start that is not there."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    vocabulary, run_dir = tmp_path / "vocab.txt", tmp_path / "run"
    vocabulary.write_text(f"{vocab_file.read_text('utf-8')}\nx\n", "utf-8")
    own = f"--set tokenizer.vocab_file={vocabulary}"
    for command, options, problem in (
        ("train", own, f"{vocabulary}:"),
        ("train", "--set train.learning_rate=1", "no key 'train.learning_rate'"),
        ("pretrain", "--set pretrain.learning_rate=1", "no key 'pretrain.learning_rate'"),
        ("train", "--set train.batch_size=soon", "'train.batch_size' is 'soon'"),
        ("train", "--set encoder.num_attention_heads=3", "'encoder.num_attention_heads' is 3"),
        ("train", "--set train.steps", "has no '='"),
    ):
        arguments = [command, config_file, "--run-dir", run_dir, *options.split()]
        assert problem in refused(capsys, *arguments)
    error = refused(capsys, "train", tmp_path / "none.yaml", "--run-dir", run_dir)
    assert error.startswith(f"{tmp_path / 'none.yaml'}: no such configuration")
    assert files(tmp_path) == {"vocab.txt"}
    for options, problem in (
        ("--strategy fast", "no strategy 'fast'"),
        ("--logical-cpus 2", "--logical-cpus does nothing"),
        ("--strategy multi_worker", "TF_CONFIG"),
        ("--init /nowhere", "is not a run dir"),
    ):
        arguments = ["train", config_file, "--run-dir", run_dir, *options.split()]
        assert problem in refused(capsys, *arguments)
    assert not (run_dir / "config.yaml").exists()


def test_folders_that_cannot_be_used(capsys, tmp_path, config_file, trained_run, bitext_dir):
    """They are not empty, no run, a run without checkpoint, no model."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.txt").write_text("mine")
    assert "not empty" in refused(capsys, "train", config_file, "--run-dir", mine)
    assert "not empty" in refused(capsys, "export", trained_run, "--out", mine)
    assert "is not a run dir" in refused(capsys, "export", mine, "--out", tmp_path / "model")
    young = tmp_path / "young"
    young.mkdir()
    for name in ("config.yaml", "vocab.txt"):
        (young / name).write_bytes((trained_run / name).read_bytes())
    error = refused(capsys, "export", young, "--out", tmp_path / "model")
    assert "no finished checkpoint" in error
    arguments = ["eval", "retrieval", tmp_path / "none", "--data", bitext_dir]
    assert "none: no such folder" in refused(capsys, *arguments, "--out", tmp_path / "out.json")
    assert files(tmp_path) == {
        *("mine", "mine/mine.txt", "young", "young/config.yaml", "young/vocab.txt")
    }


def test_the_real_command_exits_with_two_and_one_line(tmp_path, labse):
    command = ("train", tmp_path / "none.yaml", "--run-dir", tmp_path / "run")
    result = labse(*command)
    assert (result.returncode, result.stdout) == (2, "")
    expected = f"labse: error: {tmp_path / 'none.yaml'}: no such configuration"
    assert result.stderr.startswith(expected) and result.stderr.count("\n") == 1
    result = labse(*command, "--debug")
    assert result.returncode != 0
    assert "Traceback (most recent call last):" in result.stderr and "InputError" in result.stderr


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (RuntimeError("the moon is down"), 1, "RuntimeError: the moon is down"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_other_errors(capsys, monkeypatch, tmp_path, error, status, told):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("labse_tf.config.load_config", fail)
    found, out, err = run(capsys, "train", tmp_path / "x.yaml", "--run-dir", tmp_path / "run")
    assert (found, out) == (status, "")
    assert told in err and "Traceback" not in err
    assert err.count("\n") == (2 if status == 1 else 1) and ("--debug" in err) == (status == 1)


def test_embed_writes_a_row_a_line(capsys, tmp_path, model_dir, labse):
    (tmp_path / "in.txt").write_text("Katze\n\nแมว\n", "utf-8")
    out = tmp_path / "out.npy"
    assert run(capsys, "embed", model_dir, tmp_path / "in.txt", "--out", out)[0] == 0
    found = np.load(out)
    assert found.dtype == np.float32 and files(tmp_path) == {"in.txt", "out.npy"}
    np.testing.assert_array_equal(found, labse_tf.load(model_dir).encode(["Katze", "", "แมว"]))
    # From standard input.
    result = labse("embed", model_dir, "-", "--out", out, "--overwrite", input="Katze\n\nแมว\n")
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    np.testing.assert_array_equal(np.load(out), found)


TEXT = "Hôm nay trời đẹp quá!\n안녕하세요 여러분\nL'élève a déjà reçu\nガラスがぱりん\n"


def test_lines_are_embedded_in_one_form_of_unicode(capsys, tmp_path, caplog):
    def embed(form, *more):
        text, out = tmp_path / f"{form}.txt", tmp_path / f"{form}{len(more)}.npy"
        text.write_text(unicodedata.normalize(form, TEXT), "utf-8")
        encoder = "hashed_encoders:HashedCharacters"
        assert run(capsys, "embed", encoder, text, "--out", out, *more)[0] == 0
        return np.load(out)

    expected = embed("NFC")
    assert "--normalize" not in caplog.text
    assert not np.allclose(embed("NFD"), expected)
    assert caplog.text.count("--normalize") == 1
    np.testing.assert_array_equal(embed("NFD", "--normalize", "NFC"), expected)
