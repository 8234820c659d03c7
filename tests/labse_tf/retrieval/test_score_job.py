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


def pairs_file(tmp_path, rows):
    return write_lines(tmp_path / "pairs.tsv", ["\t".join(row) for row in rows])


PAIRS = [
    ("猫と家。", "Katze und Haus.", "more"),
    ("猫と家。", "Hund und Haus."),
    ("犬と本。", "Maus und Mond."),
]


def test_scores_are_put_in_front_and_lines_stay_as_they_are(encoder, tmp_path, labse, caplog):
    path = pairs_file(tmp_path, PAIRS)
    status, out, _ = labse("score", MODEL, path)
    assert status == 0
    assert out.splitlines() == [
        "\t".join([score, *row])
        for score, row in zip(("1.000000", "0.360000", "0.000000"), PAIRS, strict=True)
    ]
    # A sentence that comes twice is embedded once.
    assert len(encoder.seen) == 5
    status, out, error = labse(
        "score", MODEL, path, "--threshold", 0.359, "--out", tmp_path / "out.tsv"
    )
    assert (status, out) == (0, "")
    assert [row[0] for row in read_rows(tmp_path / "out.tsv")] == ["1.000000", "0.360000"]
    assert "2 pairs written of 3" in caplog.text


def test_margin_scores_by_hand(encoder, tmp_path, labse):
    """Sources A and B, targets 1, 2, 3; the cosines are 1, 0.36, 0 and 0, 0.64, 0."""
    path, out = pairs_file(tmp_path, PAIRS), tmp_path / "out.tsv"
    status, _, error = labse("score", MODEL, path, "--margin", "distance", "-k", 2, "--out", out)
    assert status == 0, error
    means_of_sources = {"猫と家。": 0.68, "犬と本。": 0.32}
    means_of_targets = {"Katze und Haus.": 0.5, "Hund und Haus.": 0.5, "Maus und Mond.": 0.0}
    cosines = [1.0, 0.36, 0.0]
    expected = [
        cosine - (means_of_sources[row[0]] + means_of_targets[row[1]]) / 2
        for cosine, row in zip(cosines, PAIRS, strict=True)
    ]
    assert [tuple(row[1:]) for row in read_rows(out)] == PAIRS
    np.testing.assert_allclose([float(row[0]) for row in read_rows(out)], expected, atol=2e-6)


@pytest.mark.parametrize("options", [[], ["--margin", "ratio"]])
def test_leading_columns_and_what_is_refused(encoder, tmp_path, labse, options):
    """The first eight columns tell only the animal: cat and dog, not house and book."""
    path, out = pairs_file(tmp_path, PAIRS), tmp_path / "out.tsv"
    status, _, error = labse("score", MODEL, path, "--dim", 8, "--out", out, "-k", 1, *options)
    assert status == 0, error
    assert [row[0] for row in read_rows(out)] == ["1.000000", "0.000000", "0.000000"]
    out.unlink()
    for rows, message in (
        ([("a", "b"), ("a",)], "pairs.tsv:2: one column where source<TAB>target is expected"),
        ([("a", " ")], "pairs.tsv:1: the target column is empty"),
        ([("a", "b\0")], "pairs.tsv:1: the line has a NUL byte"),
        ([], "pairs.tsv: the file is empty"),
    ):
        pairs_file(tmp_path, rows)
        status, _, error = labse("score", MODEL, path, "--out", out, *options)
        assert status == 2 and message in error and not out.exists()


def test_a_full_disk_behind_stdout_is_said(tmp_path):
    command = [sys.executable, "-m", "labse_tf.cli.main", "score", MODEL]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, pairs_file(tmp_path, PAIRS)],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'helpers'}"},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_margins_need_files(encoder, tmp_path, labse):
    path = pairs_file(tmp_path, PAIRS)
    for arguments in ((path,), ("-", "--out", tmp_path / "out.tsv")):
        status, _, error = labse("score", MODEL, *arguments, "--margin", "ratio")
        assert status == 2 and "name files for the pairs and for --out" in error
