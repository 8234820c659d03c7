"""Help without TensorFlow; commands and arguments that do not exist."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from command_line import refused, run
from repository import ROOT

from labse_tf.cli.main import COMMANDS

HEAVY = ("tensorflow", "tf_keras", "tensorflow_text", "official", "orbit", "apache_beam", "sklearn")


def test_help_and_version_need_no_heavy_library():
    """In a new process: every command's help, and nothing of TensorFlow or Beam imported."""
    program = f"""
import contextlib, io, sys
from labse_tf.cli.main import COMMANDS, main
with contextlib.redirect_stdout(io.StringIO()):
    for arguments in [[], ["--help"], ["--version"], *([*words, "--help"] for words in COMMANDS)]:
        assert main(arguments) == 0, arguments
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples(capsys, words):
    status, out, err = run(capsys, *words, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: labse {' '.join(words)}")
    assert "example" in out.lower()
    # The examples are of this command, as one would type it.
    assert f"\n  labse {' '.join(words)}" in out or f"| labse {' '.join(words)}" in out
    assert "--debug" in out


def options_of(text):
    return [word for word in text.split() if word.startswith("--") and len(word) > 2]


def command_lines(text):
    """Each `labse ...` of the text, whole, without what follows ` -- `."""
    lines = text.replace("\\\n", " ")
    found = re.findall(r"(?:^  |\| )labse (.*)", lines, flags=re.MULTILINE)
    return [line.partition(" -- ")[0] for line in found]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_examples_name_options_that_exist(capsys, words):
    _, out, _ = run(capsys, *words, "--help")
    examples = command_lines(out.partition("examples:")[2])
    assert examples
    for line in examples:
        # An example may show the command that comes before or after.
        named = [words for words in COMMANDS if f"{line} ".startswith(" ".join(words) + " ")]
        words_and_task = line.split()[: 2 if line.startswith("eval ") else len(max(named, key=len))]
        _, other, _ = run(capsys, *words_and_task, "--help")
        usage = other.partition("\n\n")[0]
        known = set(options_of(usage.replace("[", " ").replace("]", " ").replace("|", " ")))
        assert {option.partition("=")[0] for option in options_of(line)} <= known, line


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    for words, command in COMMANDS.items():
        assert f"labse {' '.join(words)} " in out and command.summary in out


@pytest.mark.parametrize("arguments", [["corpus"], ["corpus", "--help"]])
def test_a_group_names_its_own_commands(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert "labse corpus demo" in out and "labse corpus filter-bitext" in out
    assert "labse train" not in out


@pytest.mark.parametrize(
    "arguments", [["fly"], ["corpus", "fly"], ["vocab", "bild"], ["trian", "x.yaml"], ["--fly"]]
)
def test_unknown_commands(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert f"no command '{' '.join(arguments[:2])}'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "config.yaml"],
        ["train", "config.yaml", "--run-dir", "x", "--fly"],
        ["embed", "model"],
        ["export", "run", "--out", "x", "--length", "long"],
    ],
)
def test_arguments_that_are_missing_or_unknown(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"usage: labse {arguments[0]}")
    assert "Traceback" not in err


def test_a_task_that_does_not_exist(capsys):
    said = refused(capsys, "eval", "juggling", "model", "--data", "x")
    assert said.startswith("there is no task 'juggling'; choose from bucc, ")
    assert "name your own: module:attribute" in said
