"""`labse score`: the scores of pairs that are there already, and bad input."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from repository import ROOT
from text_files import read_rows, write_lines

MODEL = "dictionary_encoder:Dictionary"


PAIRS = [
    ("猫と家。", "Katze und Haus.", "more"),
    ("猫と家。", "Hund und Haus."),
    ("犬と本。", "Maus und Mond."),
]


def pairs_file(tmp_path, rows=PAIRS):
    return write_lines(tmp_path / "pairs.tsv", map("\t".join, rows))


def test_scores_are_put_in_front_and_lines_stay_as_they_are(encoder, tmp_path, succeeds, caplog):
    path, out = pairs_file(tmp_path), tmp_path / "out.tsv"
    scores = ("1.000000", "0.360000", "0.000000")
    expected = ["\t".join([score, *row]) for score, row in zip(scores, PAIRS, strict=True)]
    assert succeeds("score", MODEL, path).splitlines() == expected
    # A sentence that comes twice is embedded once.
    assert len(encoder.seen) == 5
    assert succeeds("score", MODEL, path, "--threshold", 0.359, "--out", out) == ""
    assert [row[0] for row in read_rows(out)] == ["1.000000", "0.360000"]
    assert "2 pairs written of 3" in caplog.text


def test_margin_scores_by_hand(encoder, tmp_path, succeeds, refused):
    """Sources A and B, targets 1, 2, 3; the cosines are 1, 0.36, 0 and 0, 0.64, 0."""
    path, out = pairs_file(tmp_path), tmp_path / "out.tsv"
    succeeds("score", MODEL, path, "--margin", "distance", "-k", 2, "--out", out)
    # Means of the sources 0.68, 0.68 and 0.32, of the targets 0.5, 0.5 and 0.
    expected = [1.0 - 0.59, 0.36 - 0.59, 0.0 - 0.16]
    assert [tuple(row[1:]) for row in read_rows(out)] == PAIRS
    np.testing.assert_allclose([float(row[0]) for row in read_rows(out)], expected, atol=2e-6)
    for arguments in ((path,), ("-", "--out", tmp_path / "other.tsv")):
        message = "name files for the pairs and for --out"
        refused(message, "score", MODEL, *arguments, "--margin", "ratio")


@pytest.mark.parametrize("options", [[], ["--margin", "ratio"]])
def test_leading_columns_and_what_is_refused(encoder, tmp_path, succeeds, refused, options):
    """The first eight columns tell only the animal: cat and dog, not house and book."""
    path, out = pairs_file(tmp_path), tmp_path / "out.tsv"
    succeeds("score", MODEL, path, "--dim", 8, "--out", out, "-k", 1, *options)
    assert [row[0] for row in read_rows(out)] == ["1.000000", "0.000000", "0.000000"]
    out.unlink()
    for rows, message in (
        ([("a", "b"), ("a",)], "pairs.tsv:2: one column where source<TAB>target is expected"),
        ([("a", " ")], "pairs.tsv:1: the target column is empty"),
        ([("a", "b\0")], "pairs.tsv:1: the line has a NUL byte"),
        ([], "pairs.tsv: the file is empty"),
    ):
        pairs_file(tmp_path, rows)
        refused(message, "score", MODEL, path, "--out", out, *options)
        assert not out.exists()


def test_a_full_disk_behind_stdout_is_said(tmp_path):
    command = [sys.executable, "-m", "labse_tf.cli.main", "score", MODEL]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, pairs_file(tmp_path)],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'helpers'}"},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
