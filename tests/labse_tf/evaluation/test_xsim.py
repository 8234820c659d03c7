"""The task `xsim`: margins by hand and against faiss, xSIM++, what is perturbed, broken files."""

from __future__ import annotations

import re

import faiss
import numpy as np
import pytest
from hashed_encoders import HashedCharacters, Table
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.cli.main import main
from labse_tf.evaluation.result import format_table
from labse_tf.evaluation.tasks import xsim
from labse_tf.evaluation.tasks.xsim import ENTITY, KINDS, NEGATION, NUMBER, perturb


def by_faiss(sources, targets, k):
    """LASER's way: candidates and means from two searches, one ratio at a time."""
    metric = faiss.METRIC_INNER_PRODUCT
    forward, candidates = faiss.knn(sources, targets, k, metric)
    backward, _ = faiss.knn(targets, sources, k, metric)
    best = []
    for row, places in enumerate(candidates):
        means = (forward[row].mean() + backward[places].mean(axis=1)) / 2
        best.append(places[np.argmax(forward[row] / means)])
    return np.array(best)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_found_targets_equal_those_of_two_searches():
    rng = np.random.default_rng(1)
    targets = unit(rng.normal(size=(300, 12)) + 1.0)
    sources = unit(targets[:200] + rng.normal(size=(200, 12)) * 0.35)
    found = xsim.score(sources, targets, k=4, margin="ratio").argmax(axis=1)
    np.testing.assert_array_equal(found, by_faiss(sources, targets, 4))
    assert 0.1 < np.mean(found == np.arange(200)) < 0.95
    nearest = (sources @ targets.T).argmax(axis=1)
    by_cosine = xsim.score(sources, targets, k=4, margin="absolute")
    np.testing.assert_array_equal(by_cosine.argmax(axis=1), nearest)
    assert (found != nearest).any()


# On a circle, degrees.
DEGREES = {"eins": 0, "zwei": 40, "drei": 80, "one": 30, "two": 62, "three": 110}


def circle(degrees):
    angles = {text: np.radians(angle) for text, angle in degrees.items()}
    return Table({text: [np.cos(angle), np.sin(angle)] for text, angle in angles.items()})


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "deu_Latn.devtest").write_text("eins\nzwei\ndrei\n", "utf-8")
    (folder / "eng_Latn.devtest").write_text("one\ntwo\nthree\n", "utf-8")
    return folder


def test_errors_by_hand(data):
    """By cosine: eins - one (30), zwei - one (10, not two: 22), drei - two (18, not three: 30)."""
    record = xsim.evaluate(circle(DEGREES), data, margin="absolute")
    # one - zwei (10, not eins: 30), two - drei (18, not zwei: 22), three - drei.
    assert record["errors"] == {
        "deu_Latn": {"to": pytest.approx(2 / 3), "from": pytest.approx(2 / 3)}
    }
    assert record["error"] == record["to_english"] == record["from_english"]
    assert "66.67" in format_table(xsim.describe(record))
    # With k = 1 the margin has no choice.
    assert xsim.evaluate(circle(DEGREES), data, k=1)["errors"] == record["errors"]


def test_perturbed_sentences_are_searched_too(data, tmp_path):
    """A perturbed `three` is nearer to drei than `three` is, one of `one` is far from all."""
    changed = tmp_path / "perturbed.tsv"
    changed.write_text("3\tnumber\tthirteen\n1\tnegation\tnot one\n", "utf-8")
    angles = DEGREES | {"one": 0, "two": 40, "three": 82, "thirteen": 81, "not one": 250}
    record = xsim.evaluate(circle(angles), data, margin="absolute", perturbed=str(changed))
    assert record["error"] == 0
    plus = record["plus"]["deu_Latn"]
    assert plus["error"] == record["plus_error"] == pytest.approx(1 / 3)
    assert plus["kinds"] == {"negation": 0.0, "number": pytest.approx(1 / 3)}


TEXTS = [
    "In 1984 the old king visited Upper Silesia with two dogs.",
    "She said that Maria Curie is not here, and it wasn't so before.",
    "Nothing changes here",
    "We can't stay, and they won't come; it can’t be, that's it.",
]


def test_numbers_names_and_negations_are_changed():
    found = list(perturb(TEXTS, per_kind=8))
    by_kind = {kind: [(place, text) for place, one, text in found if one == kind] for kind in KINDS}
    pattern = r"In \d{4} the old king visited Upper Silesia with \w+ dogs\."
    for place, text in by_kind[NUMBER]:
        assert place == 0 and re.fullmatch(pattern, text) and text != TEXTS[0]
    names = {(0, TEXTS[0].replace("Upper Silesia", "Maria Curie"))}
    names |= {(1, TEXTS[1].replace("Maria Curie", "Upper Silesia"))}
    assert set(by_kind[ENTITY]) == names
    assert set(by_kind[NEGATION]) == {
        (0, TEXTS[0].replace("old", "new")),
        (0, TEXTS[0].replace("with", "without")),
        (1, TEXTS[1].replace("is not", "is")),
        (1, TEXTS[1].replace("before", "after")),
    }


@settings(max_examples=40)
@given(st.lists(st.text(alphabet="aA 19.'ntois", min_size=1, max_size=40), max_size=6))
def test_perturbed_texts_are_distinct_and_repeatable(texts):
    found = list(perturb(texts, per_kind=2, seed=3))
    assert found == list(perturb(texts, per_kind=2, seed=3))
    for place, kind, text in found:
        assert text not in texts and kind in KINDS
        assert sum(one[:2] == (place, kind) for one in found) <= 2
    assert len({(place, kind, text) for place, kind, text in found}) == len(found)


def test_the_command_and_the_task_together(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "en.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    (data / "nl.txt").write_text("In 1984 bezocht\nZij zei\nNiets\nWij\n", "utf-8")
    command = ["corpus", "perturb", str(data / "en.txt"), "--out", str(tmp_path / "p.tsv")]
    assert main(command) == 0
    assert "from 4 sentences" in capsys.readouterr().out
    record = xsim.evaluate(HashedCharacters(), data, perturbed=str(tmp_path / "p.tsv"))
    assert set(record["plus"]["nl"]["kinds"]) == set(KINDS)
    assert main(command) != 0  # It is there already.
    assert main([*command, "--overwrite", "--per-kind", "0"]) != 0
