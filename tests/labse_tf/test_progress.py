"""Progress where stderr is no terminal: whole log lines."""

from __future__ import annotations

import logging

import pytest

from labse_tf.progress import Progress


@pytest.fixture
def lines(caplog, monkeypatch):
    caplog.set_level(logging.INFO, logger="labse")
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_last_line_says_all_that_was_done(lines):
    with Progress("embed", total=30, unit="sentence") as progress:
        progress.update(10)
        progress.update(20, loss="2.31")
    # A total need not be known, and earlier work is not in the rate.
    with Progress("read", unit="line") as progress:
        progress.update(2)
    with Progress("train", total=500, unit="step", initial=500):
        pass
    first, second, last = lines()
    assert first.startswith("embed: 30/30 sentence, ") and first.endswith(" sentence/s")
    assert second.startswith("read: 2 line, ") and last == "train: 500/500 step, 0.0 step/s"


def test_a_failure_writes_no_line_as_if_it_were_done(lines):
    with pytest.raises(ValueError), Progress("train", total=5) as progress:
        progress.update(2)
        raise ValueError
    assert lines() == []


def test_lines_between_show_the_facts(lines, monkeypatch):
    monkeypatch.setattr("labse_tf.progress._SECONDS_BETWEEN_LINES", 0.0)
    with Progress("train", total=4, unit="step") as progress:
        progress.update(1, loss="2.310", accuracy="0.125")
        progress.update(3, loss="1.900", accuracy="0.500")
    found = lines()
    assert found[0].startswith("train: 1/4 step, ")
    assert found[0].endswith(", loss 2.310, accuracy 0.125")
    assert found[1].startswith("train: 4/4 step, ")
