"""Pairs that share a side: which stay, that the report adds up, and the same on any order."""

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import filter_bitext
from beam_pipelines.filtering.unique_sides import SOURCE, TARGET, choose_by_side, plan_parts
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Pair
from labse_tf.files.corpus_files import SHARD, find_corpus_files

ROWS = [
    ("Good morning.", "Guten Morgen."),
    ("Good  MORNING.", "Moin, moin."),
    ("good morning.", "Schönen guten Tag."),
    ("See you soon.", "Bis bald."),
    ("See you later.", "Bis bald."),
]


def write(folder, rows):
    folder.mkdir()
    (folder / "de.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
    return str(folder)


def kept(out):
    files = [file for file in find_corpus_files([str(out)]) if file.format == SHARD]
    return {pair[:2] for file in files for pair in read_file(file)}


@pytest.mark.parametrize(
    ("side", "most", "dropped"),
    [
        ("either", 1, 3),
        pytest.param("source", 2, 1, marks=pytest.mark.slow),
        pytest.param("target", 1, 1, marks=pytest.mark.slow),
    ],
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
    assert ("## duplicate_side" in (tmp_path / "out/examples.md").read_text()) is bool(dropped)
    # The order decides nothing, and nor does it whether the scores are read again.
    again = [write(tmp_path / "again", ROWS[::-1])]
    filter_bitext.run(again, str(tmp_path / "scored"), scores=True, **options)
    assert kept(tmp_path / "scored") == kept(tmp_path / "out")
    scores = [str(tmp_path / "scored/scores")]
    filter_bitext.run(scores, str(tmp_path / "rescored"), from_scores=True, **options)
    assert kept(tmp_path / "rescored") == kept(tmp_path / "out")
    assert pq.read_table(tmp_path / "scored/scores/de").num_rows == len(ROWS)


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
    sources = [" ".join(pair.source.lower().split()) for pair in set(pairs)]
    by_source = {
        " ".join(pair.source.lower().split()) for pair in choose_by_side(pairs, SOURCE, most)
    }
    assert by_source == set(sources)
