"""Contrastive data selection among the other filters: its scores kept, its limit moved."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_pipelines import filter_bitext
from beam_pipelines.filters import ModelFilter
from beam_pipelines.filters.length_ratio import LengthRatio
from labse_tf.cli.main import main
from labse_tf.systems.cds.filter import Cds
from labse_tf.systems.cds.scorer import cds_scores

pytestmark = pytest.mark.slow

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
    columns = zip(*ROWS, strict=True)
    names = ("src_raw", "tgt_raw", "language_code")
    path = tmp_path / "in" / "mixed.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
    return path


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.gz")}


def expected_scores(scorer):
    noisy, trusted = scorer.log_likelihoods(ROWS).T
    return cds_scores(noisy, trusted)


def test_all_are_scored_and_the_limit_can_be_moved(tmp_path, corpus, cds_run, scorer):
    scores = expected_scores(scorer)
    limit = float(np.mean(sorted(scores[:3])[:2]))
    cds = str(cds_run)
    scored = tmp_path / "scored"
    first = filter_bitext.run(
        [str(corpus)], str(scored), cds=cds, min_cds_score=-1e6, scores=True, **LIMITS
    )
    assert first["total"]["kept"] == 3
    found = {
        row["src_raw"]: row["contrastive"]
        for row in pq.read_table(scored / "scores", schema=_schema(scored)).to_pylist()
    }
    for (source, _, language), score in zip(ROWS, scores, strict=True):
        expected = None if language == "xx" else pytest.approx(score, abs=1e-5)
        assert found[source] == expected

    again, direct = tmp_path / "again", tmp_path / "direct"
    moved = filter_bitext.run(
        [str(scored / "scores")], str(again), min_cds_score=limit, from_scores=True, **LIMITS
    )
    asked = filter_bitext.run([str(corpus)], str(direct), cds=cds, min_cds_score=limit, **LIMITS)
    assert moved == asked and bytes_of(again) == bytes_of(direct) != {}
    dropped = {name: number for name, number in asked["total"]["dropped"].items() if number}
    assert dropped == {"other_language": 1, "identical_sides": 1, "contrastive": 1}
    assert asked["total"]["read"] == 5 and asked["total"]["kept"] == 2


def _schema(scored):
    return pq.read_schema(next((scored / "scores" / "de").iterdir()))


def test_what_it_drops_is_among_the_examples(tmp_path, corpus, cds_run):
    out = tmp_path / "out"
    filter_bitext.run([str(corpus)], str(out), cds=str(cds_run), min_cds_score=1e6, **LIMITS)
    text = (out / "examples.md").read_text("utf-8")
    _, section = text.split("## contrastive\n")
    assert "| ru | wolf and book. | волк и книга. |" in section and "same same" not in section
    assert list(json.loads((out / "report.json").read_text())["thresholds"])[-1] == "contrastive"


def test_other_languages_are_not_given_to_people_to_mark(tmp_path, corpus, cds_run):
    out = tmp_path / "scored.tsv"
    arguments = ["corpus", "score-cds", str(cds_run), str(corpus), "--out", str(out)]
    assert main(arguments) == 0
    rows = [line.split("\t") for line in out.read_text("utf-8").splitlines()[1:]]
    assert sorted(row[2] for row in rows) == ["de", "de", "de", "ru"]


def test_a_filter_is_one_kind_or_the_other():
    assert isinstance(Cds("run", 0.1), ModelFilter)
    assert not hasattr(Cds("run", 0.1), "score")
    assert hasattr(LengthRatio(), "score") and not isinstance(LengthRatio(), ModelFilter)
