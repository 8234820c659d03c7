"""Pairs for inference: aligned files, XNLI's and MultiNLI's own, broken ones."""

from __future__ import annotations

import pytest
from text_files import write_lines

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import InferencePairs, read_inference_pairs

ROWS = {
    "de": ["Der Hund schläft.\tEin Tier ruht.\tentailment", "Es regnet.\tEs schneit.\tneutral"],
    "th": ["สุนัขนอนหลับ\tสัตว์กำลังพัก\tentailment", "ฝนตก\tหิมะตก\tneutral"],
    "ar": ["الكلب نائم\tحيوان يستريح\tentailment", "إنها تمطر\tإنها تثلج\tneutral"],
}


@pytest.fixture
def folder(tmp_path):
    for language, rows in ROWS.items():
        write_lines(tmp_path / "nli" / f"train.{language}.tsv", rows)
    return tmp_path / "nli"


OFFICIAL = """language\tgold_label\tparse\tsentence1\tsentence2\tpairID
de\tneutral\t( )\tEs regnet.\tEs schneit.\t7
de\tentailment\t( )\tDer Hund schläft.\tEin Tier ruht.\t5
th\tentailment\t( )\tสุนัขนอนหลับ\tสัตว์กำลังพัก\t5
th\tneutral\t( )\tฝนตก\tหิมะตก\t7
"""


def test_files_of_xnli_and_multinli_are_read_by_their_header(tmp_path):
    path = tmp_path / "xnli.dev.tsv"
    path.write_text(OFFICIAL, "utf-8")
    found = read_inference_pairs(str(path))
    assert found.labels == ["entailment", "neutral"]
    assert found.texts["th"] == [("สุนัขนอนหลับ", "สัตว์กำลังพัก"), ("ฝนตก", "หิมะตก")]
    assert found.texts["de"][1] == ("Es regnet.", "Es schneit.")
    path = tmp_path / "multinli_1.0_train.tsv"
    path.write_text("gold_label\tsentence1\tsentence2\n-\ta\tb\nneutral\tc\td\n", "utf-8")
    assert read_inference_pairs(str(path)) == InferencePairs({"en": [("c", "d")]}, ["neutral"])
    first, second = OFFICIAL.splitlines()[:2]
    for text, told in (
        ("gold_label\tpremise\na\tb\n", "has no premise, hypothesis"),
        (OFFICIAL[: OFFICIAL.rindex("th\t")], "has the pair 7 in some languages, but not in 'th'"),
        (f"{first}\n", "has only a header"),
        (f"{first}\n{second}\n{second}\n", "is a second pair 7 in 'de'"),
        (f"{first}\n{second}\n".replace("neutral", "-"), "has no pair with a label"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=told):
            read_inference_pairs(str(path))


def test_reading(folder):
    """A pair without a label in one language is left out in all."""
    for entry in (folder, folder / "train.*", folder / "*.tsv"):
        found = read_inference_pairs(str(entry))
        assert list(found.texts) == ["ar", "de", "th"]
        assert found.texts["de"] == [tuple(row.split("\t")[:2]) for row in ROWS["de"]]
        assert found.labels == ["entailment", "neutral"]
    path = folder / "train.th.tsv"
    path.write_text(path.read_text("utf-8").replace("\tneutral", "\t-"), "utf-8")
    found = read_inference_pairs(str(folder))
    assert found.labels == ["entailment"]
    assert {len(rows) for rows in found.texts.values()} == {1}
    # One compressed file, without a name before its language.
    path = write_lines(folder / "zh.tsv.xz", ["狗在睡觉\t动物在休息\t0", "下雨\t下雪\t-"])
    found = read_inference_pairs(str(path))
    assert found == InferencePairs({"zh": [("狗在睡觉", "动物在休息")]}, ["0"])


def test_broken_files_are_named(folder):
    for name, text, message in (
        ("train.fr.tsv", "Il pleut.\tIl neige.\tneutral\n", "the last line, but"),
        ("train.fr.tsv", "Il pleut.\t\tneutral\nx\ty\tz\n", "has no premise, hypothesis and"),
        ("z.de.tsv", "a\tb\tc\na\tb\tc\n", "is a second file in 'de'"),
        ("train.qqq.tsv", "a\tb\tc\na\tb\tc\n", "'qqq' is not the code"),
    ):
        (folder / name).write_text(text, "utf-8")
        with pytest.raises(InputError, match=message) as error:
            read_inference_pairs(str(folder))
        assert name in str(error.value)
        (folder / name).unlink()
    for entry in ("missing", "missing/*.tsv", ""):
        with pytest.raises(InputError, match="no files"):
            read_inference_pairs(str(folder.parent / entry))
