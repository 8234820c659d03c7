"""Help without TensorFlow; commands and arguments that do not exist."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

import pytest
from command_line import refused, run
from repository import ROOT

from labse_tf.cli.arguments import add_options
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


def options_of(text):
    return {word for word in re.findall(r"--[\w-]+", text) if word != "--help"}


def test_every_command_has_help_with_examples_that_name_its_options(capsys):
    helps = {}
    for words in COMMANDS:
        status, helps[words], err = run(capsys, *words, "--help")
        assert (status, err) == (0, "")
    for words, out in helps.items():
        assert out.startswith(f"usage: labse {' '.join(words)}") and "--debug" in out
        text = out.partition("examples:")[2].replace("\\\n", " ")
        examples = re.findall(r"(?:^  |\| )labse (.*)", text, flags=re.MULTILINE)
        # One is of this command, as one would type it; others come before or after it.
        assert any(line.startswith(" ".join(words)) for line in examples), words
        for line in (line.partition(" -- ")[0] for line in examples):
            spaced = f"{line} "
            named = [one for one in COMMANDS if spaced.startswith(f"{' '.join(one)} ")]
            known = helps[max(named, key=len)]
            if max(named, key=len) == ("eval",):  # Its options depend on the task.
                _, known, _ = run(capsys, *line.split()[:2], "--help")
            assert options_of(line) <= options_of(known.partition("\n\n")[0]), line


def test_the_overview_names_every_command(capsys):
    for arguments in ([], ["--help"], ["help"], ["corpus"], ["corpus", "--help"]):
        status, out, err = run(capsys, *arguments)
        assert (status, err) == (0, "")
        for words, command in COMMANDS.items():
            named = f"labse {' '.join(words)} " in out and command.summary in out
            assert named == (arguments[:1] != ["corpus"] or words[0] == "corpus"), words


def test_unknown_commands_and_arguments(capsys):
    for arguments in (["fly"], ["corpus", "fly"], ["trian", "x.yaml"], ["--fly"]):
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (2, "") and f"no command '{' '.join(arguments[:2])}'" in err
    for command in (
        "train config.yaml",
        "train config.yaml --run-dir x --fly",
        "embed model",
        "export run --out x --length long",
        "vocab coverage v.txt x -- --runner=DirectRunner",
    ):
        status, out, err = run(capsys, *command.split())
        assert (status, out) == (2, "") and "Traceback" not in err
        assert err.startswith(f"usage: labse {command.split()[0]}")
    said = refused(capsys, "eval", "juggling", "model", "--data", "x")
    assert said.startswith("there is no task 'juggling'; choose from bucc, ")


def test_a_table_of_options():
    parser = argparse.ArgumentParser()
    table = """
    files FILE...: to read, one
      or several
    -n, --per-kind N=3: how many
    --rate X
    --kind {a,b}=a
    --span N N: from, to
    --[no-]sort: by name
    --quiet: say nothing
    --out FILE!
    """
    add_options(parser, table)
    words = ["one", "two", "--rate", "0.5", "--span", "1", "2", "--no-sort", "--out", "x"]
    assert vars(parser.parse_args(words)) == {
        **{"files": ["one", "two"], "per_kind": 3, "rate": 0.5, "kind": "a", "span": ["1", "2"]},
        **{"sort": False, "quiet": False, "out": "x"},
    }
    text = " ".join(parser.format_help().split())
    assert "to read, one or several" in text and "how many (default: 3)" in text
    assert parser.parse_args(["x", "--out", "y"]).sort is None
    for wrong in (["x"], ["x", "--out", "y", "--kind", "c"], ["--out", "y"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
