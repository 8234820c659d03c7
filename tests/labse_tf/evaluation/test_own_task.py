"""A task is one file, in the folder of tasks or the user's own; `train.evaluate` runs it too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import toy_task
from hashed_encoders import HashedCharacters
from text_files import write_lines

from labse_tf.cli.main import main
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError
from labse_tf.evaluation import tasks
from labse_tf.evaluation.task import find_task, primary_figure, task_names
from labse_tf.mteb import describe
from labse_tf.training.runs.run_dir import open_existing

ENCODER = "hashed_encoders:hashed"
TASK = "toy_task:Capitals"


@pytest.fixture
def data(tmp_path) -> Path:
    lines = ["größer als das Meer", "мир и лес", "東京 2020"]
    return write_lines(tmp_path / "capitals" / "sentences.txt", lines).parent


def test_a_users_own_task(data, tmp_path, capsys):
    out = tmp_path / "out.json"
    command = ["eval", TASK, ENCODER, "--data", str(data), "--out", str(out)]
    assert main([*command, "--option", "sentences=2"]) == 0
    record = json.loads(out.read_text("utf-8"))
    expected = toy_task.evaluate(HashedCharacters(), data, sentences=2)["found"]
    assert (record["found"], record["settings"]) == (expected, {"sentences": 2})
    header, figure = map(str.split, capsys.readouterr().out.splitlines())
    assert (header, figure) == (["found"], ["capitals", f"{100 * expected:.2f}"])
    for option, message in (
        ("words=2", "has no such option; it has sentences"),
        ("sentences=two", "--option sentences=two: invalid literal"),
        ("sentences=0", "--sentences is 0; give 1 or more"),
    ):
        assert main([*command[:-2], "--option", option]) == 2
        assert message in capsys.readouterr().err


def test_a_file_in_the_folder_of_tasks_is_found(tmp_path, monkeypatch):
    folder = tmp_path / "more_tasks"
    folder.mkdir()
    (folder / "upper_case.py").write_text(Path(toy_task.__file__).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(folder)])
    assert "upper-case" in task_names()
    assert find_task("upper-case").DATA == toy_task.DATA
    assert primary_figure(find_task("upper-case"), {"found": 0.25}) == 0.25


def test_what_is_no_task_is_refused():
    for name, message in (
        ("tatoba", "there is no task 'tatoba'; choose from bucc,.*tatoeba"),
        ("no_such_module:Task", "cannot import no_such_module"),
        ("toy_task:Task", "there is no 'Task' in toy_task"),
        ("toy_task:evaluate", "is not a task: it has no DATA, OPTIONS"),
    ):
        with pytest.raises(InputError, match=message):
            find_task(name)


def train(config_file, run, *changes):
    options = ["train.steps=4", "train.dev_interval=2", *changes]
    command = ["train", str(config_file), "--run-dir", str(run)]
    return main([*command, *(f"--set={change}" for change in options)])


@pytest.mark.slow
def test_tasks_during_training(data, tmp_path, config_file, bitext_dir, caplog):
    """Measured every two steps, beside the dev pairs; the task chooses the best checkpoint."""
    run = tmp_path / "run"
    evaluate = f"train.evaluate=[{TASK}={data}]"
    dev = (f"train.dev=[{bitext_dir}]", "train.dev_size=5", f"train.best={TASK}")
    assert train(config_file, run, evaluate, *dev) == 0
    run_dir = open_existing(run)
    lines = (line for line in run_dir.read_metrics() if "held_out" in line)
    held_out = {line["step"]: line["held_out"] for line in lines}
    assert list(held_out) == [2, 4]
    for measured in held_out.values():
        assert set(measured) == {"retrieval", TASK}
        assert 0 <= measured[TASK]["found"] <= 1 and "by_language" in measured["retrieval"]
    best = json.loads((run_dir.checkpoints / "best" / "best.json").read_text("utf-8"))
    assert best["task"] == TASK
    found = {step: measured[TASK]["found"] for step, measured in held_out.items()}
    assert best["accuracy"] == max(found.values()) and found[best["step"]] == best["accuracy"]
    assert f"in the task {TASK}" in caplog.text
    # The trained network, exported, has the same figure.
    model = tmp_path / "model"
    assert main(["export", str(run), "--out", str(model), "--no-verify"]) == 0
    out = tmp_path / "out.json"
    assert main(["eval", TASK, str(model), "--data", str(data), "--out", str(out)]) == 0
    assert json.loads(out.read_text("utf-8"))["found"] == best["accuracy"]
    facts = json.loads((model / "model.json").read_text("utf-8"))["training"]
    assert facts["dev_accuracy"] is None
    # MTEB is told of a real model dir.
    encoder = open_encoder(str(model))
    encoder.encode(["a"])
    told = describe(encoder.facts())
    assert told["revision"] == encoder.facts()["model_sha256"][:12]
    assert "deu-Latn" in told["languages"] and told["framework"] == ["TensorFlow"]
    assert (told["embed_dim"], told["max_tokens"]) == (encoder.dim, encoder.sequence_length)
    assert told["n_parameters"] > told["n_embedding_parameters"] > 0


def test_refused_before_the_training(tmp_path, config_file, capsys):
    for changes, message in (
        (["train.evaluate=[tatoba=x]"], "there is no task 'tatoba'"),
        (["train.evaluate=[tatoeba]"], "'train.evaluate' is ['tatoeba']; it must be a list of"),
        (["train.evaluate=[sts=nowhere]"], "nowhere: no such file or folder, named in"),
        (["train.evaluate=[sts=.,sts=/]"], "have the task sts twice"),
        (["train.evaluate=[sts=.]", "train.best=bucc"], "'train.best' is 'bucc'; choose from sts"),
        (["train.patience=3"], "0 without 'train.dev' and 'train.evaluate'"),
    ):
        assert train(config_file, tmp_path / "run", *changes) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "run").exists()
