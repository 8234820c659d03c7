"""`--normalize`: texts are brought to one form before duplicates are looked for."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from hashed_encoders import HashedCharacters  # noqa: F401  Named on the command line.

from beam_pipelines.reading.readers import read_file
from labse_tf.cli.main import main
from labse_tf.files.corpus_files import find_corpus_files

# Composed by hand: (language, NFC, NFD).
TEXTS = [
    ("vi", "Hôm nay trời đẹp quá!", "Ho\u0302m nay tro\u031b\u0300i đe\u0323p qua\u0301!"),
    ("ko", "안녕하세요 여러분", None),
    ("fr", "L'élève a déjà reçu", "L'e\u0301le\u0300ve a de\u0301ja\u0300 rec\u0327u"),
    ("ja", "ガラスがぱりん", "カ\u3099ラスか\u3099は\u309aりん"),
    ("yo", "Ọjọ́ dára púpọ̀", "O\u0323jo\u0323\u0301 da\u0301ra pu\u0301po\u0323\u0300"),
    ("ar", "آمن المؤمن بأمه", "ا\u0653من المو\u0654من با\u0654مه"),
]


def both(language, nfc, nfd):
    nfc = unicodedata.normalize("NFC", nfc)
    return nfc, nfd or unicodedata.normalize("NFD", nfc)


def kept(folder):
    files = find_corpus_files([str(folder)])
    return sorted(text for file in files for text, _ in read_file(file))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[0])
def test_two_forms_are_one_text(text, tmp_path):
    nfc, nfd = both(*text)
    assert nfc != nfd
    (tmp_path / f"{text[0]}.txt").write_text(f"{nfd}\n{nfc}\n", "utf-8")
    command = ["corpus", "filter-monolingual", str(tmp_path / f"{text[0]}.txt"), "--out"]
    assert main([*command, str(tmp_path / "as_it_is"), "--min-characters", "5"]) == 0
    assert kept(tmp_path / "as_it_is") == sorted([nfc, nfd])
    assert main([*command, str(tmp_path / "nfc"), "--normalize", "NFC", "--min-characters=5"]) == 0
    assert kept(tmp_path / "nfc") == [nfc]
    report = json.loads((tmp_path / "nfc" / "report.json").read_text("utf-8"))
    assert report["normalize"] == "NFC"
    assert "normalize" not in json.loads((tmp_path / "as_it_is" / "report.json").read_text("utf-8"))


def test_composition_exclusions(tmp_path):
    """Devanagari's letters with a nukta stay two characters in NFC."""
    (tmp_path / "hi.txt").write_text("\u0958\u0932\u092e \u0914\u0930 \u0915\u093c\u0932\u092e\n")
    out = tmp_path / "out"
    command = ["corpus", "filter-monolingual", str(tmp_path / "hi.txt"), "--out", str(out)]
    assert main([*command, "--normalize", "NFC", "--min-characters", "5"]) == 0
    assert kept(out) == ["\u0915\u093c\u0932\u092e \u0914\u0930 \u0915\u093c\u0932\u092e"]


def test_lines_are_embedded_in_one_form(tmp_path, caplog):
    texts = [both(*text) for text in TEXTS]
    for name, column in (("nfc", 0), ("nfd", 1)):
        lines = "".join(f"{text[column]}\n" for text in texts)
        (tmp_path / f"{name}.txt").write_text(lines, "utf-8")

    def embed(name, *more):
        out = tmp_path / f"{name}{len(more)}.npy"
        command = ["embed", "hashed_encoders:HashedCharacters", str(tmp_path / f"{name}.txt")]
        assert main([*command, "--out", str(out), *more]) == 0
        return np.load(out)

    expected = embed("nfc")
    assert "--normalize" not in caplog.text
    assert not np.allclose(embed("nfd"), expected)
    assert caplog.text.count("--normalize") == 1
    np.testing.assert_array_equal(embed("nfd", "--normalize", "NFC"), expected)
