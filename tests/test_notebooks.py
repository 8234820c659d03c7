"""The notebooks of the three journeys, run whole on the tiny model, as a reader runs them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert.preprocessors import ExecutePreprocessor
from repository import ROOT
from tiny_text import sentences_of

NOTEBOOKS = ROOT / "examples" / "notebooks"
pytestmark = pytest.mark.slow
CREOLE = ["Mo pe ale dan lavil.", "Nou pe manze diri ek kari.", "Zot pe ale lekol dan lavil."]


def run(name, folder, monkeypatch, **settings):
    """Returns what the cells print."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for key, value in settings.items():
        monkeypatch.setenv(key, str(value))
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    execute = ExecutePreprocessor(timeout=300, kernel_name="python3")
    execute.preprocess(notebook, {"metadata": {"path": str(folder)}})
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return "".join(out.get("text", "") for cell in cells for out in cell.outputs)


def test_my_two_languages(every_format, bitext_dir, tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    shutil.copy(bitext_dir / "de.tsv", tmp_path / "pairs")
    places = {"LABSE": every_format, "PAIRS": "pairs", "DEV": "pairs"}
    printed = run("my_two_languages", tmp_path, monkeypatch, **places, STEPS=5)
    assert "before" in printed and "after" in printed and "  <->  " in printed
    assert (tmp_path / "work" / "mine" / "onnx" / "tokenizer.json").is_file()


def test_find_translations(model_dir, tmp_path, monkeypatch):
    for language in ("de", "en"):
        lines = "".join(f"{line}\n" for line in sentences_of(language))
        (tmp_path / f"{language}.txt").write_text(lines, "utf-8")
    printed = run("find_translations", tmp_path, monkeypatch, MODEL=model_dir)
    assert "pairs kept of" in printed
    assert (tmp_path / "work" / "scored.tsv").read_text("utf-8")


def test_add_my_language(model_dir, bitext_dir, tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    lines = [f"{number} sentences of it.\t{line}\n" for number, line in enumerate(CREOLE * 4)]
    (tmp_path / "pairs" / "mfe.tsv").write_text("".join(lines), "utf-8")
    places = {"LABSE": model_dir, "PAIRS": "pairs", "DEV": "pairs", "OLD": bitext_dir}
    printed = run("add_my_language", tmp_path, monkeypatch, **places, ADD=9, STEPS=5)
    assert "9 new tokens" in printed
    results = sorted(path.name for path in (tmp_path / "work").glob("*.json"))
    assert results == ["new_after.json", "new_before.json", "old_after.json", "old_before.json"]
