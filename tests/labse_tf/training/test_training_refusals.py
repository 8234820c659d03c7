"""Training from the command line refuses bad input, and leaves everything as it was."""

from __future__ import annotations

import shutil

from command_line import refused
from runs import labse_run
from text_files import content_of

from labse_tf.cli.main import main
from labse_tf.files.outputs import locked

TABLE = "encoder.num_layers=0"  # Without layers, a run starts sooner.


def test_another_configuration_or_vocabulary_is_refused(
    capsys, tmp_path, trained_run, config_file, vocab_file
):
    other = tmp_path / "vocab.txt"
    *tokens, _ = vocab_file.read_text("utf-8").splitlines()
    other.write_text("\n".join([*tokens, "##other"]) + "\n", "utf-8")
    moved = tmp_path / "moved.txt"
    shutil.copyfile(vocab_file, moved)
    before = content_of(trained_run)
    command = ["train", str(config_file), "--run-dir", str(trained_run)]
    for override, key in (
        ("train.margin=0.2", "train.margin"),
        ("seed=8", "seed"),
        ("train.optimizer.learning_rate=0.5", "train.optimizer.learning_rate"),
        (f"tokenizer.vocab_file={other}", "the vocabulary"),
    ):
        error = refused(capsys, *command, "--set", override)
        assert "another configuration" in error and f"({key})" in error
    with locked(trained_run):
        assert "another process is using" in refused(capsys, *command)
    # The same vocabulary elsewhere is the same.
    assert main([*command, "--set", f"tokenizer.vocab_file={moved}"]) == 0
    assert content_of(trained_run) == before


def test_a_folder_that_cannot_be_a_run_dir(capsys, tmp_path, config_file):
    for name in ("run [v2]", "a*b", "q?"):
        error = refused(capsys, "train", config_file, "--run-dir", tmp_path / name)
        assert "as a pattern" in error
    assert not any(tmp_path.iterdir())
    (tmp_path / "notes.txt").write_text("mine")
    assert "holds no run" in refused(capsys, "train", config_file, "--run-dir", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_cannot_start_leaves_nothing(capfd, tmp_path, config_file):
    """Else the corrected command would be refused: its configuration is another one."""
    for override, problem in (
        ("tokenizer.vocab_file=", "vocab_file"),
        ("tokenizer.vocab_file=/nowhere/vocab.txt", "no such file"),
        ("encoder.vocab_size=150", "'encoder.vocab_size' is 150"),
        ("train.bitext=[]", "'train.bitext' is empty"),
        ("train.dev=[/nowhere]", "no such file or folder"),
        ("languages=[sw]", "has no text in sw"),
    ):
        assert labse_run("train", config_file, tmp_path / "run", TABLE, override) == 2
        assert problem in capfd.readouterr().err
        assert not (tmp_path / "run").exists()


def test_copies_of_one_pair_leave_nothing_to_learn(config_file, tmp_path, capsys):
    (tmp_path / "de.tsv").write_text("A house\tEin Haus\n" * 5, "utf-8")
    sets = (f"train.bitext=[{tmp_path}/de.tsv]", TABLE)
    assert labse_run("train", config_file, tmp_path / "run", *sets) == 2
    errors = [line for line in capsys.readouterr().err.split("\n") if "error: " in line]
    assert len(errors) == 1 and "different texts" in errors[0]
