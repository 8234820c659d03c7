"""Fixtures of the tests of mining and scoring."""

from __future__ import annotations

import pytest
from dictionary_encoder import Dictionary

from labse_tf.cli.main import main


@pytest.fixture
def encoder(monkeypatch):
    """The class behind the model `dictionary_encoder:Dictionary`."""
    monkeypatch.setattr(Dictionary, "seen", [])
    return Dictionary


@pytest.fixture
def labse(capsys):
    """Runs the command line; returns its status, output and errors."""

    def run(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def refused(labse):
    """Runs a command that ends with status 2 and the message; returns all its errors."""

    def run(message, *arguments):
        status, out, error = labse(*arguments)
        assert (status, out) == (2, "") and message in error, error
        return error

    return run


@pytest.fixture
def succeeds(labse):
    """Runs a command without errors; returns its output."""

    def run(*arguments):
        status, out, error = labse(*arguments)
        assert status == 0, error
        return out

    return run
