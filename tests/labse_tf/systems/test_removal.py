"""The core works without its systems, and loads few files: on a copy of the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

PACKAGES = ("labse_tf", "vocab", "export", "beam_pipelines", "configs")
SYSTEMS = sorted(path.name for path in (ROOT / "labse_tf" / "systems").iterdir() if path.is_dir())
# The most files of ours that a command may import, and what it imports to work.
LIMITS = [
    (80, "labse_tf.cli.training_commands labse_tf.training.dual_encoder labse_tf.training.fit"),
    (45, "labse_tf.cli.vector_commands labse_tf.retrieval.job"),
    (90, "labse_tf.cli.corpus_commands beam_pipelines.filter_bitext"),
]


def python(code: str, place) -> str:
    environment = os.environ | {"PYTHONPATH": str(place), "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_without_systems_the_core_trains_and_exports(tmp_path, config_file):
    """Their commands are gone; those of the core work."""
    copy, run, model = (tmp_path / name for name in ("tree", "run", "model"))
    ignored = shutil.ignore_patterns("__pycache__", *SYSTEMS)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    code = f"""
import labse_tf
from labse_tf.cli.main import COMMANDS, main
assert labse_tf.__file__.startswith({str(copy)!r})
assert ("train-laser",) not in COMMANDS and ("train",) in COMMANDS
assert main(["train", {str(config_file)!r}, "--run-dir", {str(run)!r}]) == 0
assert main(["export", {str(run)!r}, "--out", {str(model)!r}, "--no-verify"]) == 0
assert main(["corpus", "filter-bitext", "--help"]) == 0
"""
    assert "[--cds" not in python(code, copy)
    assert (model / "encoder").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(("most", "modules"), LIMITS)
def test_a_command_imports_few_files(most, modules):
    code = f"""
import importlib, sys
for name in {["labse_tf.cli.main", *modules.split()]!r}:
    importlib.import_module(name)
files = {{getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}}
ours = [file for file in files if file.startswith({str(ROOT)!r}) and "/.venv/" not in file]
print(len([file for file in ours if not file.endswith("__init__.py")]))
"""
    assert int(python(code, ROOT).splitlines()[-1]) <= most
