"""Thresholds of tables worked by hand, and what is refused."""

from __future__ import annotations

import pytest
from text_files import write_lines

from labse_tf.cli.main import main
from labse_tf.systems.cds.calibration import choose_threshold, read_marked

# Score -> marks. Precision from the top: 1/1, 2/2, 2/3, 3/4, 4/5, 4/6, 4/7.
TABLE = [(0.9, "G"), (0.8, "G"), (0.7, "B"), (0.6, "G"), (0.5, "G"), (0.4, "B"), (0.3, "B")]
TIES = [(0.9, "G"), (0.5, "G"), (0.5, "B"), (0.1, "B")]


def choose(table, target):
    scores, marks = zip(*table, strict=True)
    found = choose_threshold(scores, [mark == "G" for mark in marks], target_precision=target)
    return found.threshold, found.kept, found.kept_good


@pytest.mark.parametrize(
    ("table", "target", "expected"),
    [
        (TABLE, 1.0, (0.8, 2, 2)),
        (TABLE, 0.8, (0.5, 5, 4)),  # though 0.7 and 0.6 miss it
        (TABLE, 0.6, (0.4, 6, 4)),
        (TABLE, 4 / 7, (0.3, 7, 4)),
        # After the first of the two with 0.5 precision would be 2/2.
        (TIES, 0.9, (0.9, 1, 1)),
        (TIES, 0.66, (0.5, 3, 2)),
        (TIES[1:3], 0.5, (0.5, 2, 1)),
    ],
)
def test_the_lowest_threshold_that_meets_the_target(table, target, expected):
    assert choose(table, target) == choose(table[::-1], target) == expected


def test_the_file(tmp_path):
    rows = ["Score\tlabel\tsource", "0.5\tGOOD\tx", "-1e-3\tbad", "7\t\tx", "nonsense\t \tx", ""]
    found = read_marked(write_lines(tmp_path / "a.tsv", rows))
    assert found == ([0.5, -0.001], [True, False], 3)


@pytest.mark.parametrize(
    ("rows", "target", "message"),
    [
        (["score\tlabel", "0.5\tOK"], "0.8", ":2: the label is 'OK'"),
        (["score\tlabel", "0.5\tGOOD", "x\tBAD"], "0.8", ":3: the score is 'x'"),
        (["score\tlabel", "0.9\tBAD", "0.8\tGOOD", "0.7\tGOOD"], "0.9", "the best reaches 66.7%"),
        (["score\tlabel", "nan\tBAD"], "0.8", ":2: the score is 'nan'"),
        (["score\tmark", "0.5\tGOOD"], "0.8", ":1: there is no column 'label'"),
        (["score\tlabel", "0.5\t"], "0.8", "no pair is marked"),
        (["score\tlabel", "0.5\tBAD"], "0.8", "no pair is marked GOOD"),
        (["score\tlabel", "0.5\tGOOD"], "0", "--target-precision"),
        (["score\tlabel", "0.5\tGOOD"], "nan", "--target-precision"),
    ],
)
def test_refusals_name_the_line(tmp_path, capsys, rows, target, message):
    path = write_lines(tmp_path / "scored.tsv", rows)
    assert main(["corpus", "calibrate", str(path), "--target-precision", target]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_what_is_printed(tmp_path, capsys):
    """The intervals are Wilson's, by hand for 4 of 5 and 4 of 4."""
    rows = [f"{score}\t{'GOOD' if mark == 'G' else 'BAD'}" for score, mark in TABLE]
    path = write_lines(tmp_path / "scored.tsv", ["score\tlabel", *rows, "0.1\t"])
    assert main(["corpus", "calibrate", str(path), "--target-precision", "0.8"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "threshold  0.5",
        "marked     7 pairs, 4 of them GOOD; 1 without a label",
        "kept       5, 4 of them GOOD",
        "precision  0.800 (95 % interval 0.376 to 0.964)",
        "recall     1.000 (95 % interval 0.510 to 1.000)",
    ]
