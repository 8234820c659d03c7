"""The experiments of CMLM: their arms, their data, what is kept of a run, and their report."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from config_kinds import KINDS
from repository import ROOT

from benchmarks.cmlm import data, report, run
from labse_tf.config import check_warmup, load_config
from labse_tf.files.textio import read_neighbours

EXPERIMENTS = yaml.safe_load(run.EXPERIMENTS.read_text("utf-8"))
# These have as many steps of the dual encoder as those with pre-training, and so less time.
LESS_TIME = {
    "table, layers, with the steps that pre-training leaves": 0.65,
    "layers, averaging start, with the steps that pre-training leaves": 0.5,
}
ARMS = [(name, arm) for name, experiment in EXPERIMENTS.items() for arm in experiment["arms"]]


@pytest.mark.parametrize(("name", "arm"), ARMS)
def test_arms_can_be_trained_and_take_the_same_time(name, arm):
    experiment = EXPERIMENTS[name]
    stages = [stage for stage in experiment["arms"][arm] if "keep" not in stage]
    shares = [stage["share"] for stage in stages if "share" in stage]
    assert not shares or sum(shares) == pytest.approx(LESS_TIME.get(arm, 1))
    encoders = []
    for stage in stages:
        settings = experiment.get("set", {}) | stage.get("set", {})
        sets = [
            f"{key}={value}".replace("{", "").replace("}", "") for key, value in settings.items()
        ]
        file = ROOT / stage.get("config", experiment["config"])
        config = load_config(file, sets, KINDS[stage["command"]])
        check_warmup(config)
        encoders.append(config.encoder)
    # Stages start from one another: equally wide, none with fewer layers than the one before.
    if name != "inference":
        assert len({encoder.hidden_size for encoder in encoders}) == 1
        assert [one.num_layers for one in encoders] == sorted(one.num_layers for one in encoders)
    last = {"english": "pretrain", "inference": "train-nli"}.get(name, "train")
    assert stages[-1]["command"] == last


@pytest.mark.parametrize("documents", [True, False])
def test_documents_are_shuffled_whole_or_taken_apart(documents, tmp_path):
    lines = [f"{letter}{n}" for letter in "абвгдежзик" for n in range(4)]
    text = "\n\n".join("\n".join(lines[start : start + 4]) for start in range(0, 40, 4))
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ru.txt").write_text(f"{text}\n", "utf-8")
    run.shuffle(tmp_path / "in", tmp_path / "out", documents=documents)
    pairs = [(one, two) for _, one, two in read_neighbours(tmp_path / "out/ru.txt")]
    kept = [one[0] == two[0] and int(two[1]) == int(one[1]) + 1 for one, two in pairs]
    found = (tmp_path / "out/ru.txt").read_text("utf-8").split()
    assert sorted(found) == sorted(lines) and found != lines
    if documents:
        assert len(pairs) == 30 and all(kept)
    else:
        assert len(pairs) == 39 and sum(kept) < 10


def test_pairs_of_the_manual_are_held_out(tmp_path):
    long = "x" * 31
    for folder, name, lines in (
        ("train", "en", [f"Known {long}"]),
        *(
            (folder, language, ["-"])
            for folder in ("train", "held_out")
            for language in data.LANGUAGES
        ),
        ("held_out", "de", [f"neu {long}", f"bekannt {long}", "kurz", f"gesehen {long}"]),
        ("train", "de", [f"gesehen {long}"]),
    ):
        data._write(tmp_path / folder / f"{name}.txt", lines)
    rows = [("New", "neu"), ("Known", "bekannt"), ("Newer", "gesehen"), ("Other", "fremd")]
    lines = [f"{english} {long}\t{foreign} {long}\thelp" for english, foreign in rows]
    for language in data.LANGUAGES:
        # The other languages need a pair too: their own.
        own = [f"English {long}\t{language} {long}\tui"]
        data._write(tmp_path / "office/test" / f"{language}.tsv", own + lines * (language == "de"))
        if language != "de":
            data._write(tmp_path / "held_out" / f"{language}.txt", [f"{language} {long}"])
    data.write_manual(tmp_path / "office", tmp_path)
    assert (tmp_path / "manual/tatoeba.deu-eng.deu").read_text("utf-8") == f"neu {long}\n"
    assert (tmp_path / "manual/tatoeba.deu-eng.eng").read_text("utf-8") == f"New {long}\n"


def test_the_report_has_means_and_standard_errors(tmp_path):
    (tmp_path / run.RESULTS).mkdir()
    for seed, accuracy, loss in ((1, 0.5, 4.0), (2, 0.52, 4.5), (3, 0.57, 4.25)):
        languages = {code: {"mean_accuracy": accuracy} for code in data.LANGUAGES.values()}
        record = {"task": "tatoeba", "primary_metric": "accuracy", "accuracy": accuracy}
        held_out = {"cmlm": {"loss": loss}, "cmlm_shuffled": {"loss": loss + 0.25}}
        found = {
            "arm": "S3",
            "seed": seed,
            "runs": [{"steps": 8, "held_out": held_out}, {"steps": 10}],
            "scores": {"news": record | {"languages": languages}},
        }
        (tmp_path / run.RESULTS / f"S3_{seed}.json").write_text(json.dumps(found))
    header, _, row = report.report(tmp_path).splitlines()
    error = np.std([50, 52, 57], ddof=1) / 3**0.5
    assert header == "|  | steps | held-out loss | shuffled | news | news, few |"
    news = f"53 +- {error:.2g}"
    assert row == f"| S3 | 10 +- 0 | 4.25 +- 0.14 | 0.25 +- 0 | {news} | {news} |"
