"""The demo's stages: run once, resumed, refused; with real commands on a little text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labse_tf.cli.main import COMMANDS, main
from labse_tf.demo.stages import Stage, run_stages, stages
from labse_tf.errors import InputError

SENTENCES = {
    "de": "Das Haus ist sehr groß.\nWir gehen heute ins Kino.\nDer Hund schläft im Garten.\n",
    "ja": "今日はとても良い天気です。\n図書館で本を読みました。\n彼は毎朝七時に起きます。\n",
}


@pytest.fixture
def two_stages(tmp_path: Path) -> list[Stage]:
    text = tmp_path / "text"
    text.mkdir()
    for language, lines in SENTENCES.items():
        (text / f"{language}.txt").write_text(lines, "utf-8")
    out = tmp_path / "demo"
    clean, vocab = str(out / "clean"), str(out / "vocab.txt")
    return [
        Stage("filter", ["corpus", "filter-monolingual", str(text), "--out", clean]),
        Stage("vocabulary", ["vocab", "build", clean, "--out", vocab, "--vocab-size", "400"]),
    ]


def test_stages_are_run_once_and_anew_if_they_were_stopped(two_stages, tmp_path):
    out = tmp_path / "demo"
    assert run_stages(out, two_stages, main)[0] == 0
    assert json.loads((out / "clean" / "report.json").read_text())["total"]["kept"] == 6
    vocabulary, record = ((out / name).read_bytes() for name in ("vocab.txt", "stages.json"))

    def never(command):
        raise AssertionError(command)

    status, seconds = run_stages(out, two_stages, never)
    assert (status, set(seconds)) == (0, {"filter", "vocabulary"})
    # Stopped before its record.
    kept = {name: one for name, one in json.loads(record).items() if name != "vocabulary"}
    (out / "stages.json").write_text(json.dumps(kept))
    (out / "vocab.txt").write_text("half a vocab")
    (out / "clean.partial").mkdir()
    assert run_stages(out, two_stages, main)[0] == 0
    assert (out / "vocab.txt").read_bytes() == vocabulary
    two_stages[1].command[-1] = "300"
    with pytest.raises(InputError, match="different command"):
        run_stages(out, two_stages, main)


def test_a_stage_that_fails_ends_the_demo_and_can_be_mended(two_stages, tmp_path, capsys):
    out = tmp_path / "demo"
    broken = tmp_path / "text" / "de.txt"
    text = broken.read_bytes()
    broken.write_bytes(text + b"\xff\xfe broken \n")
    assert run_stages(out, two_stages[:1], main) == (2, {})
    assert f"labse: error: {broken}:4: invalid UTF-8" in capsys.readouterr().err
    assert not (out / "clean").exists()
    broken.write_bytes(text)
    assert run_stages(out, two_stages[:1], main)[0] == 0
    (out / "stages.json").unlink()
    with pytest.raises(InputError, match="not empty"):
        run_stages(out, two_stages, main)
    assert (out / "clean").exists()
    # Every stage is a command that exists.
    for stage in stages(tmp_path, "configs/tiny.yaml", "configs/tiny_table.yaml"):
        words = tuple(stage.command[:2])
        assert words in COMMANDS or words[:1] in COMMANDS, stage
