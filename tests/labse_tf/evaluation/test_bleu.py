"""BLEU and chrF, by hand and in scripts without spaces; the command."""

from __future__ import annotations

import json
import math

from labse_tf.cli.eval_commands import score_translations
from labse_tf.cli.main import main


def test_bleu_by_hand():
    """Right are 5 of 6 words, 4 of 5 pairs, 3 of 4 triples, 2 of 3 quadruples; equal lengths."""
    found = score_translations(["the cat sat on the hat"], ["the cat sat on the mat"], "en")["BLEU"]
    expected = 100 * math.prod([5 / 6, 4 / 5, 3 / 4, 2 / 3]) ** 0.25
    assert math.isclose(found["score"], expected, abs_tol=1e-6)
    assert "tok:13a" in found["signature"]


def test_scripts_without_spaces_are_not_one_word():
    for language, tokenizer, text, other in (
        ("zh", "zh", "我有两只猫和一条狗。", "我有两只猫和一条鱼。"),
        ("th", "char", "ฉันมีแมวสองตัว", "ฉันมีหมาสองตัว"),
        ("ar", "13a", "القطة ترى البيت الكبير جدا", "القطة ترى البيت الصغير جدا"),
    ):
        same = score_translations([text], [text], language)
        differing = score_translations([text], [other], language)
        assert f"tok:{tokenizer}" in same["BLEU"]["signature"]
        for name in ("BLEU", "chrF"):
            assert math.isclose(same[name]["score"], 100, abs_tol=1e-6)
            assert 10 < differing[name]["score"] < 95


def test_the_command(tmp_path, capsys):
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("The cat sees the house.\nYes.\n", "utf-8")
    other.write_text("The cat sees the house.\nNo.\n", "utf-8")
    command = ["eval", "translation", str(one), str(other), "--language", "en"]
    assert main([*command, "--out", str(tmp_path / "scores.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 sentences\nBLEU ") and "\nchrF " in printed
    written = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    lines = [path.read_text("utf-8").splitlines() for path in (one, other)]
    assert written == {"sentences": 2, **score_translations(*lines, "en")}
    other.write_text("The cat sees the house.\n", "utf-8")
    assert main(command) == 2
    assert "has 2 lines" in capsys.readouterr().err
