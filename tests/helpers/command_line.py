"""Runs a command of the command line within the test's process."""

from __future__ import annotations

from labse_tf.cli.main import main


def labse(*arguments):
    """Returns the exit status."""
    return main([str(one) for one in arguments])


def run(capsys, *arguments):
    capsys.readouterr()
    status = labse(*arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def refused(capsys, *arguments):
    """Asserts exit 2, silence on stdout and one line on stderr; returns what that says."""
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, ""), err
    assert err.startswith("labse: error: ") and err.endswith("\n")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err.removeprefix("labse: error: ")
