"""Pairs that share a side: which stay, that the report adds up, and the same on any order."""

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import read_corpus, write_lines

from beam_pipelines import filter_bitext
from beam_pipelines.filtering.unique_sides import SOURCE, TARGET, choose_by_side, plan_parts
from beam_pipelines.records import Pair
from labse_tf.files.corpus_files import find_corpus_files

ROWS = [
    ("Good morning.", "Guten Morgen."),
    ("Good  MORNING.", "Moin, moin."),
    ("good morning.", "Schönen guten Tag."),
    ("See you soon.", "Bis bald."),
    ("See you later.", "Bis bald."),
]


def write(folder, rows):
    return str(write_lines(folder / "de.tsv", map("\t".join, rows)))


def kept(out):
    return {pair[:2] for pair in read_corpus(out)}


@pytest.mark.parametrize(
    ("side", "most", "dropped"),
    [("either", 1, 3)]
    + [pytest.param(*one, marks=pytest.mark.slow) for one in (("source", 2, 1), ("target", 1, 1))],
)
def test_unique_sides(tmp_path, side, most, dropped):
    inputs = [write(tmp_path / "in", [*ROWS, *ROWS[:1] * 2])]
    options = {"unique_side": side, "pairs_per_side": most}
    total = filter_bitext.run(inputs, str(tmp_path / "out"), **options)["total"]
    first_is_kept = ROWS[0] in kept(tmp_path / "out")
    # Copies of a kept pair are duplicates; those of others share its side.
    assert total["dropped"]["duplicate"] == 2 * first_is_kept
    assert total["dropped"]["duplicate_side"] == dropped + 2 * (not first_is_kept)
    assert total["kept"] == len(ROWS) - dropped == len(kept(tmp_path / "out"))
    assert "## duplicate_side" in (tmp_path / "out/examples.md").read_text()
    # Neither the order matters, nor whether scores are read again.
    again, scored = [write(tmp_path / "again", ROWS[::-1])], tmp_path / "scored"
    filter_bitext.run(again, str(scored), scores=True, **options)
    filter_bitext.run([f"{scored}/scores"], str(tmp_path / "two"), from_scores=True, **options)
    assert kept(scored) == kept(tmp_path / "two") == kept(tmp_path / "out")
    assert pq.read_table(scored / "scores/de").num_rows == len(ROWS)


def test_parts_are_planned_by_size(tmp_path, monkeypatch):
    files = find_corpus_files([write(tmp_path / "in", ROWS * 100)])
    assert plan_parts(files) == 1
    monkeypatch.setattr("beam_pipelines.filtering.unique_sides._TEXT_BYTES_PER_PART", 1000)
    assert plan_parts(files) == -(-(tmp_path / "in/de.tsv").stat().st_size // 1000)
    report = filter_bitext.run([str(tmp_path / "in")], str(tmp_path / "out"), unique_side="either")
    assert report["total"]["kept"] == 2


WORDS = st.sampled_from(["a", "A", "b ", "c  d", "C d"])


@given(st.lists(st.builds(Pair, WORDS, WORDS, st.just("de"))), st.integers(1, 3))
def test_no_side_is_shared_by_more(pairs, most):
    left = choose_by_side(choose_by_side(pairs, SOURCE, most), TARGET, most)
    assert set(left) == set(choose_by_side(choose_by_side(pairs[::-1], SOURCE, most), TARGET, most))
    for side in range(2):
        sides = [" ".join(pair[side].lower().split()) for pair in set(left)]
        assert all(sides.count(text) <= most for text in sides)
    # Every group keeps as many as it may.
    sources, by_source = (
        {" ".join(pair.source.lower().split()) for pair in some}
        for some in (pairs, choose_by_side(pairs, SOURCE, most))
    )
    assert by_source == sources
