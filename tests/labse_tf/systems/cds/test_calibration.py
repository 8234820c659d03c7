"""Thresholds of tables worked by hand, and what is refused."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binomtest

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.systems.cds.calibration import choose_threshold, read_marked, wilson_interval

# Score -> marks. Precision from the top: 1/1, 2/2, 2/3, 3/4, 4/5, 4/6, 4/7.
TABLE = [(0.9, "G"), (0.8, "G"), (0.7, "B"), (0.6, "G"), (0.5, "G"), (0.4, "B"), (0.3, "B")]


def choose(table, target, **options):
    scores, marks = zip(*table, strict=True)
    good = [mark == "G" for mark in marks]
    found = choose_threshold(scores, good, target_precision=target, **options)
    return found.threshold, found.kept, found.kept_good


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (1.0, (0.8, 2, 2)),
        (0.9, (0.8, 2, 2)),
        (0.8, (0.5, 5, 4)),  # though 0.7 and 0.6 miss it
        (0.75, (0.5, 5, 4)),
        (0.6, (0.4, 6, 4)),
        (0.5, (0.3, 7, 4)),
        (4 / 7, (0.3, 7, 4)),
    ],
)
def test_the_lowest_threshold_that_meets_the_target(target, expected):
    assert choose(TABLE, target) == expected
    assert choose(TABLE[::-1], target) == expected


def test_ties_and_a_bad_pair_at_the_top():
    assert choose([(1.0, "B"), *TABLE], 0.65) == (0.5, 6, 4)
    # After the first of the two with 0.5 precision would be 2/2.
    table = [(0.9, "G"), (0.5, "G"), (0.5, "B"), (0.1, "B")]
    assert choose(table, 0.9) == (0.9, 1, 1)
    assert choose(table, 0.66) == (0.5, 3, 2)
    assert choose([(0.5, "G"), (0.5, "B")], 0.5) == (0.5, 2, 1)


def test_by_lower_bound_is_stricter():
    """45 of 50 are 90 %, from 78.6 % by the lower bound; 40 of 40, from 91.2 %."""
    table = [(1.0, "G")] * 40 + [(0.5, "G")] * 5 + [(0.5, "B")] * 5
    assert choose(table, 0.9) == (0.5, 50, 45)
    assert choose(table, 0.9, by_lower_bound=True) == (1.0, 40, 40)
    assert choose(table, 0.78, by_lower_bound=True) == (0.5, 50, 45)


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (8, 10), (45, 50), (3, 400)])
def test_wilson_interval(successes, trials):
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx(tuple(expected), abs=1e-6)


def test_unreachable():
    with pytest.raises(InputError, match=r"no threshold reaches 90.0% GOOD pairs; .* 66.7%"):
        choose([(0.9, "B"), (0.8, "G"), (0.7, "G")], 0.9)


def test_no_good_pair():
    with pytest.raises(InputError, match="no pair is marked GOOD"):
        choose([(0.9, "B"), (0.8, "B")], 0.5)


def write(path, *rows, header="score\tlabel\tsource"):
    path.write_text("".join(f"{row}\n" for row in (header, *rows)), "utf-8")
    return path


def test_the_file(tmp_path):
    path = write(tmp_path / "a.tsv", "0.5\tGOOD\tx", "-1e-3\tbad", "7\t\tx", "nonsense\t \tx", "")
    assert read_marked(path) == ([0.5, -0.001], [True, False], 3)
    other = write(tmp_path / "b.tsv", "a\tb\t0.25\tgood", header="source\ttarget\tScore\tLabel")
    assert read_marked(other) == ([0.25], [True], 0)


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (["0.5\tOK"], "score\tlabel", ":2: the label is 'OK'; use GOOD or BAD"),
        (["0.5\tGOOD", "x\tBAD"], "score\tlabel", ":3: the score is 'x'"),
        (["nan\tBAD"], "score\tlabel", ":2: the score is 'nan'"),
        (["0.5\tGOOD"], "value\tlabel", ":1: there is no column 'score'"),
        (["0.5\tGOOD"], "score\tmark", ":1: there is no column 'label'"),
        (["0.5\t"], "score\tlabel", "no pair is marked"),
        (["0.5\tBAD"], "score\tlabel", "no pair is marked GOOD"),
    ],
)
def test_refusals_name_the_line(tmp_path, capsys, rows, header, message):
    path = write(tmp_path / "scored.tsv", *rows, header=header)
    assert main(["corpus", "calibrate", str(path)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


@pytest.mark.parametrize("target", ["0", "1.1", "nan"])
def test_a_target_out_of_range(tmp_path, capsys, target):
    path = write(tmp_path / "scored.tsv", "0.5\tGOOD")
    assert main(["corpus", "calibrate", str(path), "--target-precision", target]) == 2
    assert "--target-precision" in capsys.readouterr().err


def test_what_is_printed(tmp_path, capsys):
    rows = [f"{score}\t{'GOOD' if mark == 'G' else 'BAD'}" for score, mark in TABLE]
    path = write(tmp_path / "scored.tsv", *rows, "0.1\t")
    assert main(["corpus", "calibrate", str(path), "--target-precision", "0.8"]) == 0
    low, high = binomtest(4, 5).proportion_ci(0.95, method="wilson")
    recall_low, recall_high = binomtest(4, 4).proportion_ci(0.95, method="wilson")
    assert capsys.readouterr().out.splitlines() == [
        "threshold  0.5",
        "marked     7 pairs, 4 of them GOOD; 1 without a label",
        "kept       5, 4 of them GOOD",
        f"precision  0.800 (95 % interval {low:.3f} to {high:.3f})",
        f"recall     1.000 (95 % interval {recall_low:.3f} to {recall_high:.3f})",
    ]
    assert math.isclose(low, 0.3755, abs_tol=1e-4)
