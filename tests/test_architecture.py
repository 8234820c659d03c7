"""The rooms know of each other what pyproject.toml allows, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tomllib
from repository import ROOT


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
