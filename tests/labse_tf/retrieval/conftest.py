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
