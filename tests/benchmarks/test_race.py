"""The race: its data, its score, its contestants, and the table of its results."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml
from config_kinds import KINDS
from repository import ROOT

from benchmarks.race import data, plot
from benchmarks.race import run as race
from benchmarks.race.score import score, score_tests
from labse_tf.config import check_warmup, load_config

CONTESTANTS = yaml.safe_load(race._CONTESTANTS.read_text("utf-8"))


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def test_the_score_by_hand(tmp_path):
    """Texts are numbers, on a circle; in Thai the second is nearer to the first's translation."""
    write(tmp_path / "t.deu-eng.eng", "0", "1", "2")
    write(tmp_path / "t.deu-eng.deu", "0.1", "1.2", "2.3")
    write(tmp_path / "t.tha-eng.eng", "0", "1")
    write(tmp_path / "t.tha-eng.tha", "0", "0.2")
    counts = tmp_path / "counts.json"
    write(counts, json.dumps({"deu": 1000, "tha": 999}))

    def encode(texts):
        angles = np.array([float(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    expected = {"all": 75.0, "seen": 100.0, "languages": {"deu": 100.0, "tha": 50.0}}
    assert score_tests(encode, [f"circle={tmp_path}"], counts) == {"circle": expected}
    assert score(encode, tmp_path, {"tha": 2000})["seen"] == 50.0


def test_spanish_is_joined_by_equal_english(tmp_path):
    write(tmp_path / "train" / "spa" / "es.tsv", "a\tuno", "b\tdos", "a\tuno más")
    write(tmp_path / "train" / "deu" / "de.tsv", "b\tzwei", "c\tdrei", "a\teins", "a\tein")
    write(tmp_path / "train" / "jpn" / "ja.tsv", "c\t三")
    data.join_spanish(tmp_path / "train", tmp_path / "spanish")
    (found,) = (tmp_path / "spanish").rglob("*.tsv")
    assert found == tmp_path / "spanish" / "deu" / "de.tsv"
    assert found.read_text("utf-8").splitlines() == ["dos\tzwei", "uno\teins", "uno\tein"]


def test_the_data_share_no_sentence_with_the_test(tmp_path):
    rows = [f"sentence {n}.\tSatz {n}." for n in range(300)]
    write(tmp_path / "pairs" / "deu.tsv", *rows)
    write(tmp_path / "test" / "tatoeba.deu-eng.eng", "another sentence")
    write(tmp_path / "test" / "tatoeba.deu-eng.deu", "ein anderer Satz")
    data.prepare(tmp_path / "pairs", tmp_path / "test", tmp_path / "out")
    train = (tmp_path / "out/train/deu/de.tsv").read_text("utf-8").splitlines()
    dev = (tmp_path / "out/dev/tatoeba.deu-eng.deu").read_text("utf-8").splitlines()
    assert len(dev) == 30 and len(train) == 270
    assert not {row.split("\t")[1] for row in train} & set(dev)
    # Punctuation and case make no other sentence.
    write(tmp_path / "test" / "tatoeba.deu-eng.deu", "SATZ 7")
    with pytest.raises(ValueError, match="deu: .*Satz 7.* is in the test"):
        data.prepare(tmp_path / "pairs", tmp_path / "test", tmp_path / "again")


@pytest.mark.parametrize(
    "name", [name for name, one in CONTESTANTS.items() if {"stages", "tables"} & set(one)]
)
def test_our_contestants_can_be_trained(name):
    stages = CONTESTANTS[name].get("stages") or CONTESTANTS[name]["tables"]
    assert sum(stage["share"] for stage in stages) == pytest.approx(1, abs=1e-3)
    layers = []
    for stage in stages:
        sets = [f"{key}={value}" for key, value in stage.get("set", {}).items()]
        kind = KINDS[stage.get("command", "train")]
        config = load_config(ROOT / stage["config"], sets, kind)
        check_warmup(config)
        layers.append(config.encoder.num_layers)
    assert layers == sorted(layers)
    if "tables" in CONTESTANTS[name]:
        assert layers == [0] * ["no", "one", "two", "three"].index(name.split()[1])
    elif name.startswith("ours"):
        assert str(layers[-1] or "no") in name


@pytest.mark.slow
def test_a_race_of_seconds(tmp_path):
    """What needs no peer: its result is a file, which is not made again."""
    words = ["red house", "blue sky", "cold water", "old tree", "new road"]
    rows = [f"{word} {n}\t{word[::-1]} {n}" for n in range(50) for word in words]
    write(tmp_path / "pairs" / "deu.tsv", *rows)
    write(tmp_path / "test" / "tatoeba.deu-eng.eng", *words)
    write(tmp_path / "test" / "tatoeba.deu-eng.deu", *(word[::-1] for word in words))
    write(tmp_path / "ntrex" / "eng.txt", *words)
    write(tmp_path / "ntrex" / "deu.txt", *words)
    arguments = [*(tmp_path / part for part in ("pairs", "test", "ntrex")), "--out", tmp_path / "d"]
    run("benchmarks.race.data", *arguments)
    out = tmp_path / "race"
    command = ["benchmarks.race.run", tmp_path / "d", tmp_path / "test", "--out", out]
    run(*command, "--only", "TF-IDF", "--minutes", 1)
    result = out / "TF-IDF_0_1" / "result.json"
    before = result.stat().st_mtime_ns
    run(*command, "--only", "TF-IDF", "--minutes", 1)
    assert result.stat().st_mtime_ns == before
    assert json.loads(result.read_text("utf-8"))["scores"]["news"]["all"] == 100.0
    assert "| TF-IDF | 0 | " in run("benchmarks.race.plot", out, "--out", tmp_path / "race.png")
    assert (tmp_path / "race.png").stat().st_size > 10_000


def run(module, *arguments):
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_table_has_means_and_ranges(tmp_path):
    for seed, accuracy in ((1, 50.0), (2, 60.0)):
        scores = {test: {"all": accuracy, "seen": accuracy} for test in ("tatoeba", "news")}
        result = {"name": "ours", "minutes": 5, "seed": seed, "scores": scores}
        write(tmp_path / f"ours_5_{seed}" / "result.json", json.dumps(result))
    row = "| ours | 5 " + "| 55.0 (50.0 to 60.0) " * 4 + "|"
    assert plot.table(plot.read(tmp_path)).splitlines()[-1] == row
