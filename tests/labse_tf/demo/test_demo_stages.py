"""The demo's stages: run once, resumed, refused; with real commands on a little text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labse_tf.cli.main import COMMANDS, main
from labse_tf.demo.stages import Demo, Stage, stages
from labse_tf.errors import InputError

SENTENCES = {
    "de": ["Das Haus ist sehr groß.", "Wir gehen heute ins Kino.", "Der Hund schläft im Garten."],
    "ja": ["今日はとても良い天気です。", "図書館で本を読みました。", "彼は毎朝七時に起きます。"],
    "ar": ["الكتاب على الطاولة الكبيرة.", "ذهبت إلى السوق صباح اليوم.", "الطقس جميل في الربيع."],
}


@pytest.fixture
def two_stages(tmp_path: Path) -> list[Stage]:
    text = tmp_path / "text"
    text.mkdir()
    for language, lines in SENTENCES.items():
        (text / f"{language}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    out = tmp_path / "demo"
    clean, vocab = str(out / "clean"), str(out / "vocab.txt")
    return [
        Stage("filter", ["corpus", "filter-monolingual", str(text), "--out", clean]),
        Stage("vocabulary", ["vocab", "build", clean, "--out", vocab, "--vocab-size", "400"]),
    ]


def test_a_stage_that_ended_is_not_run_again(two_stages, tmp_path):
    out = tmp_path / "demo"
    assert Demo(out, main).run(two_stages, before={}) == 0
    report = json.loads((out / "clean" / "report.json").read_text())
    assert report["total"]["kept"] == 9
    made = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = Demo(out, main)
    assert again.run(two_stages, before={}) == 0
    made_again = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert {k: v for k, v in made.items() if k.name != "stages.json"} == {
        k: v for k, v in made_again.items() if k.name != "stages.json"
    }
    assert set(again.seconds) == {"filter", "vocabulary"}


def test_a_stage_stopped_before_its_record_is_made_anew(two_stages, tmp_path):
    out = tmp_path / "demo"
    assert Demo(out, main).run(two_stages, before={}) == 0
    record = json.loads((out / "stages.json").read_text())
    del record["vocabulary"]
    (out / "stages.json").write_text(json.dumps(record))
    vocabulary = (out / "vocab.txt").read_bytes()
    (out / "vocab.txt").write_text("half a vocab")
    (out / "clean.partial").mkdir()
    assert Demo(out, main).run(two_stages, before={}) == 0
    assert (out / "vocab.txt").read_bytes() == vocabulary


def test_a_stage_that_fails_ends_the_demo_and_can_be_mended(two_stages, tmp_path, capsys):
    out = tmp_path / "demo"
    broken = tmp_path / "text" / "de.txt"
    text = broken.read_bytes()
    broken.write_bytes(text + b"\xff\xfe broken \n")
    assert Demo(out, main).run(two_stages, before={}) == 2
    assert f"labse: error: {broken}:4: invalid UTF-8" in capsys.readouterr().err
    assert not (out / "clean").exists() and not (out / "vocab.txt").exists()
    broken.write_bytes(text)
    assert Demo(out, main).run(two_stages, before={}) == 0


def test_a_folder_with_something_else_is_refused(two_stages, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not empty"):
        Demo(tmp_path / "demo", main).run(two_stages, before={})
    assert (tmp_path / "demo" / "thesis.txt").read_text() == "years of work"


def test_other_settings_in_the_same_folder_are_refused(two_stages, tmp_path):
    assert Demo(tmp_path / "demo", main).run(two_stages, before={}) == 0
    two_stages[1].command[-1] = "300"
    with pytest.raises(InputError, match="different command"):
        Demo(tmp_path / "demo", main).run(two_stages, before={})


def test_every_stage_is_a_command_that_exists(tmp_path):
    for stage in stages(tmp_path, "configs/tiny.yaml", "configs/tiny_table.yaml"):
        words = tuple(stage.command[:2])
        assert words in COMMANDS or words[:1] in COMMANDS, stage
