"""The rooms know of each other what pyproject.toml allows, and no more."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import tomllib
from repository import ROOT

HOUSES = ("labse_tf", "beam_pipelines", "vocab", "export", "tests", "benchmarks", "examples")
MOST_LINES, MEDIAN_LINES, MOST_ROOMS = 350, 120, 20


def test_import_contracts_are_kept():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    assert len(contracts) >= 5
    for contract in contracts:
        assert f"{contract['name']} KEPT" in result.stdout
    assert "0 broken" in result.stdout


def source_files():
    return [path for house in HOUSES for path in (ROOT / house).rglob("*.py")]


def test_files_are_small():
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in source_files()}
    long = {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > MOST_LINES}
    assert long == {}
    assert statistics.median(lines.values()) <= MEDIAN_LINES


def test_folders_have_few_rooms():
    """Modules and folders, as a drawing of the folder shows them; that of tests has its helpers."""
    rooms = Counter()
    for path in source_files():
        if path.name != "__init__.py":
            rooms[path.parent] += 1
    for folder in {parent for path in source_files() for parent in path.parents}:
        if folder != ROOT and folder.is_relative_to(ROOT):
            rooms[folder.parent] += 1
    many = {str(path.relative_to(ROOT)): n for path, n in rooms.items() if n > MOST_ROOMS}
    assert many == {}
