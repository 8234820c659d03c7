"""From pairs to scores to a threshold to clean shards, through the command line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import labse
from text_files import content_of, write_lines

from beam_pipelines import filter_bitext
from beam_pipelines.reading.readers import read_file
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.textio import read_pairs
from labse_tf.systems.cds.scorer import TranslatorScorer, cds_scores


def rows_of(path):
    header, *rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    assert header == ["score", "label", "language", "source", "target"]
    return rows


@pytest.fixture(scope="module")
def inputs(bitext_dir):
    return [bitext_dir / "de.tsv", bitext_dir / "ja.tsv"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory, cds_run, inputs):
    out = tmp_path_factory.mktemp("scored") / "scored.tsv"
    assert labse("corpus", "score-cds", cds_run, *inputs, "--out", out) == 0
    return out


def test_every_pair_has_the_score_of_the_model(scored, inputs, scorer):
    pairs = [(*sides, path.stem) for path in inputs for _, *sides in read_pairs(path)]
    rows = rows_of(scored)
    found = {(source, target, code): float(score) for score, _, code, source, target in rows}
    assert len(rows) == len(pairs) and set(found) == set(pairs)
    expected = cds_scores(*scorer.log_likelihoods(pairs).T)
    np.testing.assert_allclose([found[pair] for pair in pairs], expected, rtol=0, atol=1e-5)
    assert all(label == "" for _, label, *_ in rows)


def test_a_marked_sample_gives_the_threshold_that_filters(
    tmp_path, capsys, scored, cds_run, inputs
):
    rows = sorted(rows_of(scored), key=lambda row: -float(row[0]))
    for place, row in enumerate(rows):
        row[1] = "BAD" if place >= 40 and place % 3 else "GOOD"
    lines = ["score\tlabel\tlanguage\tsource\ttarget", *map("\t".join, rows)]
    marked = write_lines(tmp_path / "marked.tsv", lines)
    assert labse("corpus", "calibrate", marked, "--target-precision", "0.8") == 0
    threshold = capsys.readouterr().out.split()[1]
    kept = sum(float(row[0]) >= float(threshold) for row in rows)
    assert 40 < kept < 96

    out = tmp_path / "clean"
    # A negative number needs its equals sign; and half a unit of what the file rounded off.
    options = ["--cds", cds_run, f"--min-cds-score={float(threshold) - 5e-7}"]
    assert labse("corpus", "filter-bitext", *inputs, "--out", out, *options) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["total"]["kept"] == kept
    assert report["total"]["dropped"]["contrastive"] == 96 - kept
    assert report["thresholds"]["contrastive"] == pytest.approx(float(threshold), abs=1e-6)
    for name in ("de", "ja"):
        scores = [float(score) for score, _, code, *_ in rows if code == name]
        expected = sum(score >= float(threshold) for score in scores)
        assert report["languages"][name]["kept"] == expected
    assert list(report["thresholds"])[-1] == "contrastive"
    _, section = (out / "examples.md").read_text("utf-8").split("## contrastive\n")
    assert f"| {rows[-1][2]} | " in section


@pytest.mark.slow
def test_the_best_stay_where_there_are_too_many(tmp_path, scored, cds_run, inputs):
    out, best = tmp_path / "clean", ("--max-per-language", 10, "--keep", "best")
    command = ("corpus", "filter-bitext", *inputs, "--cds", cds_run, "--min-cds-score=-1e6")
    assert labse(*command, *best, "--out", out) == 0
    for name in ("de", "ja"):
        rows = [row for row in rows_of(scored) if row[2] == name]
        best = sorted(rows, key=lambda row: -float(row[0]))[:10]
        files = find_corpus_files([str(out / "bitext" / name)])
        kept = {(pair.source, pair.target) for file in files for pair in read_file(file)}
        assert kept == {(source, target) for *_, source, target in best}
        report = json.loads((out / "report.json").read_text())["languages"][name]
        assert report["kept"] == 10 and report["dropped"]["over_cap"] == 38


def test_options_that_do_not_go_together(tmp_path, cds_run, inputs, capfd):
    out, together = tmp_path / "out", "--cds and --min-cds-score go together"
    best = ("--keep", "best", "--min-cds-score=0", "--unique-side", "source", "--cds", cds_run)
    for options, problem in (
        (best, "--keep best and --unique-side exclude each other"),
        (("--cds", cds_run), together),
        (("--min-cds-score", "1"), together),
        (("--cds", "/nowhere", "--min-cds-score", "1"), "is not a run dir"),
    ):
        assert labse("corpus", "filter-bitext", inputs[0], *options, "--out", out) == 2
        assert problem in capfd.readouterr().err and not out.exists()


@pytest.mark.slow
def test_a_sample_is_the_same_each_time_and_of_known_languages(
    tmp_path, capsys, corpus, scored, cds_run, inputs
):
    samples, out = [], tmp_path / "scored.tsv"
    command = ("corpus", "score-cds", cds_run, "--overwrite", "--out", out)
    for order in (inputs, [*inputs[::-1], inputs[0]]):
        assert labse(*command, *order, "--sample", 20) == 0
        samples.append({tuple(row[2:]) for row in rows_of(out)})
        assert len(rows_of(out)) == 20
    assert samples[0] == samples[1] <= {tuple(row[2:]) for row in rows_of(scored)}
    assert {row[0] for row in samples[0]} == {"de", "ja"}
    assert labse(*command, corpus) == 0
    assert sorted(row[2] for row in rows_of(out)) == ["de", "de", "de", "ru"]
    # A broken run.
    run, before = tmp_path / "run", out.read_bytes()
    shutil.copytree(cds_run, run)
    shutil.rmtree(run / "checkpoints" / "trusted")
    assert labse("corpus", "score-cds", run, corpus, "--overwrite", "--out", out) == 2
    assert "no checkpoint of the translator" in capsys.readouterr().err
    assert out.read_bytes() == before


@pytest.mark.slow
def test_the_vocabulary_is_learned_where_none_is_given(tmp_path, cds_config, bitext_dir):
    """And without a step of tuning the second translator is the first: every pair scores 0."""
    run, pairs = tmp_path / "run", (bitext_dir / "fr.tsv", "--trusted", bitext_dir / "de.tsv")
    command = ("corpus", "train-cds", "--config", cds_config, "--run-dir", run, "--noisy", *pairs)
    steps = ("--set", "cds.noisy_steps=2", "--set", "cds.trusted_steps=0")
    for _ in range(2):
        assert labse(*command, *steps) == 0
        learned = (tmp_path / "run.vocab.txt").read_text("utf-8")
        assert (run / "vocab.txt").read_text("utf-8") == learned
    tokens = learned.splitlines()
    assert tokens[0] == "[PAD]" and {"Katze", "chat"} <= set(tokens) and len(tokens) <= 600
    noisy, trusted = TranslatorScorer(run).log_likelihoods([("a cat", "eine Katze", "de")]).T
    assert noisy == trusted < 0


ROWS = [
    ("cat and house.", "Katze und Haus.", "de"),
    ("dog and moon are here.", "Hund und Mond sind hier.", "de"),
    ("wolf and book.", "волк и книга.", "ru"),
    ("same same", "same same", "de"),
    ("horse and bread.", "caval e pan.", "xx"),
]
LIMITS = {"max_language_doubt": 1.0, "max_length_deviation": 100.0}


@pytest.fixture
def corpus(tmp_path):
    columns = zip(("src_raw", "tgt_raw", "language_code"), zip(*ROWS, strict=True), strict=True)
    pq.write_table(pa.table(dict(columns)), tmp_path / "mixed.parquet")
    return str(tmp_path / "mixed.parquet")


@pytest.mark.slow
def test_all_are_scored_and_the_limit_can_be_moved(tmp_path, corpus, cds_run, scorer):
    scores = cds_scores(*scorer.log_likelihoods(ROWS).T)
    limit = float(np.mean(sorted(scores[:3])[:2]))
    scored, again, direct = (tmp_path / name for name in ("scored", "again", "direct"))
    cds = {"cds": str(cds_run), **LIMITS}
    first = filter_bitext.run([corpus], str(scored), min_cds_score=-1e6, scores=True, **cds)
    assert first["total"]["kept"] == 3
    schema = pq.read_schema(next((scored / "scores" / "de").iterdir()))
    table = pq.read_table(scored / "scores", schema=schema).to_pylist()
    found = {row["src_raw"]: row["contrastive"] for row in table}
    for (source, _, language), score in zip(ROWS, scores, strict=True):
        expected = None if language == "xx" else pytest.approx(score, abs=1e-5)
        assert found[source] == expected

    options = {"min_cds_score": limit, "from_scores": True, **LIMITS}
    moved = filter_bitext.run([str(scored / "scores")], str(again), **options)
    asked = filter_bitext.run([corpus], str(direct), min_cds_score=limit, **cds)
    assert moved == asked and content_of(again / "bitext") == content_of(direct / "bitext") != {}
    dropped = {name: number for name, number in asked["total"]["dropped"].items() if number}
    assert dropped == {"other_language": 1, "identical_sides": 1, "contrastive": 1}
