"""From pairs to scores to a threshold to clean shards, through the command line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from beam_pipelines.reading.readers import read_file
from labse_tf.cli.main import main
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.textio import read_pairs
from labse_tf.systems.cds.filter import Cds
from labse_tf.systems.cds.scorer import cds_scores

pytestmark = pytest.mark.slow


def rows_of(path):
    header, *rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    assert header == ["score", "label", "language", "source", "target"]
    return rows


@pytest.fixture(scope="module")
def pairs(bitext_dir):
    return [
        (source, target, language)
        for language in ("de", "ja")
        for _, source, target in read_pairs(bitext_dir / f"{language}.tsv")
    ]


@pytest.fixture(scope="module")
def scored(tmp_path_factory, cds_run, bitext_dir):
    out = tmp_path_factory.mktemp("scored") / "scored.tsv"
    inputs = [str(bitext_dir / name) for name in ("de.tsv", "ja.tsv")]
    arguments = ["corpus", "score-cds", str(cds_run), *inputs, "--out", str(out)]
    assert main(arguments) == 0
    return out


def test_every_pair_has_the_score_of_the_model(scored, pairs, scorer):
    rows = rows_of(scored)
    found = {(source, target, code): float(score) for score, _, code, source, target in rows}
    assert len(rows) == len(pairs) and set(found) == set(pairs)
    noisy, trusted = scorer.log_likelihoods(pairs).T
    expected = cds_scores(noisy, trusted)
    np.testing.assert_allclose([found[pair] for pair in pairs], expected, rtol=0, atol=1e-5)
    assert all(label == "" for _, label, *_ in rows)


def test_a_marked_sample_gives_the_threshold_that_filters(
    tmp_path, capsys, scored, cds_run, bitext_dir
):
    rows = sorted(rows_of(scored), key=lambda row: -float(row[0]))
    for place, row in enumerate(rows):
        row[1] = "BAD" if place >= 40 and place % 3 else "GOOD"
    lines = ["score\tlabel\tlanguage\tsource\ttarget", *("\t".join(row) for row in rows)]
    marked = tmp_path / "marked.tsv"
    marked.write_text("\n".join(lines) + "\n", "utf-8")
    assert main(["corpus", "calibrate", str(marked), "--target-precision", "0.8"]) == 0
    threshold = capsys.readouterr().out.split()[1]
    kept = sum(float(row[0]) >= float(threshold) for row in rows)
    assert 40 < kept < 96

    out = tmp_path / "clean"
    inputs = [str(bitext_dir / name) for name in ("de.tsv", "ja.tsv")]
    arguments = ["corpus", "filter-bitext", *inputs, "--out", str(out)]
    # A negative number needs its equals sign; and half a unit of what the file rounded off.
    arguments += ["--cds", str(cds_run), f"--min-cds-score={float(threshold) - 5e-7}"]
    assert main(arguments) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["total"]["read"] == 96 and report["total"]["kept"] == kept
    assert report["total"]["dropped"]["contrastive"] == 96 - kept
    assert report["thresholds"]["contrastive"] == pytest.approx(float(threshold), abs=1e-6)
    for name in ("de", "ja"):
        row = report["languages"][name]
        expected = sum(
            code == name and float(score) >= float(threshold) for score, _, code, *_ in rows
        )
        assert row["kept"] == expected and row["dropped"]["contrastive"] == 48 - expected


@pytest.mark.parametrize("through_scores", [False, True])
def test_the_best_stay_where_there_are_too_many(
    tmp_path, scored, cds_run, bitext_dir, through_scores
):
    inputs = [str(bitext_dir / name) for name in ("de.tsv", "ja.tsv")]
    filtered = ["corpus", "filter-bitext", *inputs, "--cds", str(cds_run)]
    if through_scores:
        assert main([*filtered, "--min-cds-score=-1e6", "--scores", "--out", f"{tmp_path}/a"]) == 0
        filtered = ["corpus", "filter-bitext", f"{tmp_path}/a/scores", "--from-scores"]
    cap = ["--min-cds-score=-1e6", "--max-per-language", "10", "--keep", "best"]
    out = tmp_path / "clean"
    assert main([*filtered, *cap, "--out", str(out)]) == 0
    for name in ("de", "ja"):
        rows = [row for row in rows_of(scored) if row[2] == name]
        best = sorted(rows, key=lambda row: -float(row[0]))[:10]
        files = find_corpus_files([str(out / "bitext" / name)])
        kept = {(pair.source, pair.target) for file in files for pair in read_file(file)}
        assert kept == {(source, target) for *_, source, target in best}
        report = json.loads((out / "report.json").read_text())["languages"][name]
        assert report["kept"] == 10 and report["dropped"]["over_cap"] == 38


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--keep", "best"], "--keep best needs scores"),
        (
            ["--keep", "best", "--min-cds-score=0", "--unique-side", "source", "--cds"],
            "--keep best and --unique-side exclude each other",
        ),
    ],
)
def test_keep_best_wants_scores_alone(tmp_path, cds_run, bitext_dir, capfd, options, problem):
    options = [*options, str(cds_run)] if options[-1] == "--cds" else options
    arguments = ["corpus", "filter-bitext", str(bitext_dir / "de.tsv"), *options]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert problem in capfd.readouterr().err


def test_the_cheap_filters_come_first(tmp_path, cds_run):
    (tmp_path / "de.tsv").write_text("cat\tcat\nx\tHund\ndog and house\tHund und Haus\n", "utf-8")
    arguments = ["corpus", "filter-bitext", str(tmp_path / "de.tsv"), "--out"]
    arguments += [str(tmp_path / "clean"), "--cds", str(cds_run), "--min-cds-score=1e6"]
    assert main(arguments) == 0
    dropped = json.loads((tmp_path / "clean/report.json").read_text())["total"]["dropped"]
    found = {name: number for name, number in dropped.items() if number}
    assert found == {"identical_sides": 1, "too_short": 1, "contrastive": 1}


def test_a_sample_is_the_same_each_time(tmp_path, scored, cds_run, bitext_dir):
    samples = []
    for name, inputs in (("a", ["de.tsv", "ja.tsv"]), ("b", ["ja.tsv", "de.tsv", "de.tsv"])):
        out = tmp_path / f"{name}.tsv"
        arguments = ["corpus", "score-cds", cds_run]
        arguments += [*(bitext_dir / each for each in inputs), "--sample", 20, "--out", out]
        assert main([str(argument) for argument in arguments]) == 0
        samples.append({tuple(row[2:]) for row in rows_of(out)})
        assert len(rows_of(out)) == 20
    assert samples[0] == samples[1] <= {tuple(row[2:]) for row in rows_of(scored)}
    assert {row[0] for row in samples[0]} == {"de", "ja"}


def test_the_vocabulary_is_learned_where_none_is_given(tmp_path, cds_config, bitext_dir):
    run = tmp_path / "run"
    arguments = ["corpus", "train-cds", "--config", cds_config, "--run-dir", run]
    arguments += ["--noisy", bitext_dir / "fr.tsv", "--trusted", bitext_dir / "de.tsv"]
    for key in ("noisy_steps", "trusted_steps"):
        arguments += ["--set", f"cds.{key}=0"]
    for _ in range(2):
        assert main([str(argument) for argument in arguments]) == 0
        learned = (tmp_path / "run.vocab.txt").read_text("utf-8")
        assert (run / "vocab.txt").read_text("utf-8") == learned
    tokens = learned.splitlines()
    assert tokens[0] == "[PAD]" and {"Katze", "chat"} <= set(tokens) and len(tokens) <= 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cds", "RUN"], "--cds and --min-cds-score go together"),
        (["--min-cds-score", "1"], "--cds and --min-cds-score go together"),
        (["--cds", "/nowhere", "--min-cds-score", "1"], "is not a run dir"),
    ],
)
def test_filter_refusals(tmp_path, capsys, cds_run, bitext_dir, arguments, message):
    arguments = [str(cds_run) if part == "RUN" else part for part in arguments]
    out = tmp_path / "clean"
    assert main(["corpus", "filter-bitext", str(bitext_dir), "--out", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err and not out.exists()


def test_an_error_inside_the_pipeline_is_told(tmp_path, capsys, cds_run, bitext_dir):
    run, out = tmp_path / "run", tmp_path / "scored.tsv"
    shutil.copytree(cds_run, run)
    shutil.rmtree(run / "checkpoints" / "trusted")
    arguments = ["corpus", "score-cds", run, bitext_dir / "de.tsv", "--out", out]
    assert main([str(argument) for argument in arguments]) == 2
    assert "no checkpoint of the translator" in capsys.readouterr().err and not out.exists()


def test_the_limit_itself_is_kept():
    assert Cds("run", 0.25).accept(0.25) and not Cds("run", 0.25).accept(0.2499)
