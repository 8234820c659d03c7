"""The benchmark of new tokens: its arms can be trained, and its pairs are kept apart."""

from __future__ import annotations

import lzma

import pytest
from repository import ROOT

from benchmarks.vocab import new_language
from benchmarks.vocab.first_rows import ALTERNATIVES
from labse_tf.config import load_config
from labse_tf.files.textio import read_pairs


@pytest.mark.parametrize("arm", [arm for arm, settings in new_language.ARMS.items() if settings])
def test_arms(arm):
    settings = dict(new_language.ARMS[arm])
    assert settings.pop("rows") in {None, *ALTERNATIVES}
    sets = [f"{key}={str(value).format(old='old')}" for key, value in settings.items()]
    load_config(ROOT / new_language._CONFIG, sets)


def test_the_last_lines_are_kept_for_the_test(tmp_path):
    count = new_language._TEST_LINES + 3
    for language in ("eng_Latn", "bam_Latn"):
        with lzma.open(tmp_path / f"{language}.txt.xz", "wt", encoding="utf-8") as file:
            file.writelines(f"{language} {number}\n" for number in range(count))
    new_language.write_pairs(tmp_path, ["bam"], tmp_path / "out")
    train, test = (
        [pair for _, *pair in read_pairs(tmp_path / "out" / part / "bm.tsv")]
        for part in ("train", "test")
    )
    assert train == [[f"eng_Latn {number}", f"bam_Latn {number}"] for number in range(3)]
    assert len(test) == new_language._TEST_LINES and test[0][0] == "eng_Latn 3"
