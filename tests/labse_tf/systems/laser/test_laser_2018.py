"""LASER's encoder of 2018, with random weights of its layout, is read, embeds, and is no export."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import torch_like
from laser_content import laser_content, reference

import labse_tf
from labse_tf.cli.main import main
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError
from labse_tf.systems.laser import moses

# Text, its language, and its words by Moses' rules.
TEXTS = [
    ("The cat sees the house.", "en", "the cat sees the house ."),
    ("The dog doesn't see the cat's house!", "en", "the dog doesn 't see the cat 's house !"),
    ("L'été, c'est l'océan que j'ai vu.", "fr", "l' été , c' est l' océan que j' ai vu ."),
    ("Кошка видит дом, а собака нет.", "ru", "кошка видит дом , а собака нет ."),
    ("", "en", ""),
    ("the " * 30 + "house", "en", "the " * 30 + "house"),
]
LENGTH = 24


@pytest.fixture(autouse=True)
def no_abbreviations(monkeypatch):
    """Those of sacremoses are not needed here."""
    monkeypatch.setattr(moses, "_of_sacremoses", lambda language: [])


def learn(words, merges):
    """Byte-pair encodings by the book: join the most frequent pair, again and again."""
    pieces = {word: [*word[:-1], word[-1] + "</w>"] for word in words}
    pairs = []
    for _ in range(merges):
        counts = Counter(
            pair for word in pieces.values() for pair in zip(word, word[1:], strict=False)
        )
        best = max(sorted(counts), key=counts.__getitem__)
        pairs.append(best)
        for word in pieces.values():
            joined(word, best)
    return pairs, pieces


def joined(pieces, pair):
    place = 0
    while place < len(pieces) - 1:
        if tuple(pieces[place : place + 2]) == pair:
            pieces[place : place + 2] = ["".join(pair)]
        place += 1


def as_text(pieces):
    return [f"{piece}@@" for piece in pieces[:-1]] + [pieces[-1].removesuffix("</w>")]


WORDS = sorted({word for *_, words in TEXTS for word in words.split()})
PAIRS, PIECES = learn(WORDS, 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As published: the weights of an old PyTorch, codes, and their vocabulary."""
    folder = tmp_path_factory.mktemp("laser")
    known = sorted({piece for word in PIECES.values() for piece in as_text(word)})
    codes = [f"{left} {right} 9\n" for left, right in PAIRS]
    (folder / "langs.fcodes").write_text("".join(codes), "utf-8")
    (folder / "langs.fvocab").write_text("".join(f"{one} 5\n" for one in known), "utf-8")
    random.Random(1).shuffle(known)
    # Some are not in the dictionary: unknown.
    dictionary = {name: number for number, name in enumerate(known[:-3], 4)}
    content = laser_content(dictionary, left_pad=True, padding_value=0.0)
    torch_like.save(content, folder / "bilstm.pt", before_1_6=True)
    return folder


def importing(folder, out, *options, weights="bilstm.pt", codes="langs.fcodes"):
    command = ["import-laser", str(folder / weights), str(folder / codes), "--out", str(out)]
    return main([*command, "--length", str(LENGTH), *options])


@pytest.fixture(scope="module")
def model_dir(folder):
    assert importing(folder, folder / "model", "--format", "hub,onnx") == 0
    return folder / "model"


def expected_vectors(folder):
    from labse_tf.systems.laser.torch_files import read_torch_file

    content = read_torch_file(folder / "bilstm.pt")
    rows = []
    for *_, words in TEXTS:
        pieces = [piece for word in words.split() for piece in as_text(PIECES[word])]
        ids = [content["dictionary"].get(piece, 3) for piece in pieces][: LENGTH - 1]
        rows.append(reference(content, [*ids, 2]))
    assert len(content["dictionary"]) > 30
    vectors = np.stack(rows)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("file", ["", "onnx/model.onnx"])
def test_vectors_are_lasers(folder, model_dir, file):
    """By an LSTM in NumPy, of words and pieces that are found without the code under test."""
    expected = expected_vectors(folder)
    found = open_encoder(str(model_dir / file)).encode([text for text, *_ in TEXTS])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    model = labse_tf.load(model_dir / file, language="en")
    english = [number for number, (_, language, _) in enumerate(TEXTS) if language == "en"]
    found = model.encode([TEXTS[number][0] for number in english])
    np.testing.assert_allclose(found, expected[english], atol=1e-5)
    # One has more tokens than the model takes.
    assert model.texts_cut == 1 and model.sequence_length == LENGTH


def test_the_commands(folder, model_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = str(model_dir)
    lines = [text for text, *_ in TEXTS if text][:4]
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), "utf-8")
    assert main(["embed", model, "text.txt", "--out", "auto.npy"]) == 0
    assert main(["embed", model, "text.txt", "--out", "fr.npy", "--language", "fr"]) == 0
    auto, french = np.load("auto.npy"), np.load("fr.npy")
    np.testing.assert_allclose(auto, expected_vectors(folder)[:4], atol=1e-5)
    # Apostrophes are another matter in French.
    assert [np.allclose(*pair, atol=1e-5) for pair in zip(auto, french, strict=True)] == [
        True,
        False,
        True,
        True,
    ]
    assert main(["mine", model, "text.txt", "text.txt", "--out", "mined.tsv"]) == 0
    mined = [line.split("\t") for line in (tmp_path / "mined.tsv").read_text("utf-8").splitlines()]
    assert {row[-2] for row in mined} == {row[-1] for row in mined} == set(lines)
    assert main(["score", model, "pairs.tsv", "--out", "scored.tsv"]) == 0
    scored = (tmp_path / "scored.tsv").read_text("utf-8").splitlines()
    assert [float(line.split("\t")[0]) for line in scored] == pytest.approx([1.0] * 4, abs=1e-4)


def test_the_folder(folder, model_dir):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["tokenizer"] == "laser-2018" and facts["formats"] == ["hub", "onnx"]
    names = sorted(path.name for path in model_dir.iterdir())
    assert names == ["README.md", "encoder", "model.json", "onnx", "tokenizer"]
    card = (model_dir / "README.md").read_text("utf-8")
    assert "byte-pair encodings of LASER" in card and 'hub.KerasLayer("preprocessor")' not in card
    encoder = tf.saved_model.load(str(model_dir / "encoder"))
    assert set(encoder.signatures["serving_default"].structured_outputs) >= {"default"}
    # Its vectors depend on the codes as well.
    one = open_encoder(str(model_dir)).facts()["model_sha256"]
    other = folder / "other"
    shutil.copytree(model_dir, other)
    (other / "tokenizer" / "bpe.vocab").write_text("a 1\n", "utf-8")
    assert open_encoder(str(other)).facts()["model_sha256"] != one


def test_what_cannot_work_is_said(model_dir, config_file, tmp_path, capsys):
    for command, message in (
        (["verify", str(model_dir)], "text is prepared in Python: it has no preprocessor"),
        (
            ["export", str(model_dir), "--out", str(tmp_path / "out")],
            "has LASER's tokeniser, which training does not know",
        ),
        (
            ["train", str(config_file), "--run-dir", str(tmp_path), "--init", str(model_dir)],
            "has LASER's tokeniser, which training does not know",
        ),
    ):
        assert main(command) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["hub,text", "hub,lite", "hf", "onnx"])
def test_formats(folder, tmp_path, name, capsys):
    default_is_hub = name == "hub,text"
    status = importing(folder, tmp_path / "model", "--format", name)
    assert status == (0 if default_is_hub else 2)
    said = capsys.readouterr().err
    assert default_is_hub or "LASER's encoder of 2018 cannot be written" in said
    assert not (tmp_path / "model" / "text_encoder").exists()


@pytest.mark.parametrize("table", ["float16", "int8"])
def test_smaller_tables(folder, tmp_path, table):
    assert importing(folder, tmp_path / "model", "--table", table) == 0
    found = labse_tf.load(tmp_path / "model").encode([text for text, *_ in TEXTS])
    assert np.sum(found * expected_vectors(folder), axis=1).min() > 0.999


def test_a_language_is_for_this_encoder_alone(tmp_path):
    with pytest.raises(InputError, match="splits text of all languages alike"):
        open_encoder("hashed_encoders:cased", language="fr")


def test_files_of_other_models_are_refused(folder, tmp_path, capsys):
    for suffix in (".fcodes", ".fvocab"):
        shutil.copy(folder / f"langs{suffix}", tmp_path / f"other{suffix}")
    (tmp_path / "other.fvocab").write_text("x 1\ny@@ 1\n", "utf-8")
    shutil.copy(folder / "bilstm.pt", tmp_path)
    assert importing(tmp_path, tmp_path / "model", codes="other.fcodes") == 2
    assert "other.fvocab: the dictionary of the weights lacks 2 of its 2" in capsys.readouterr().err
    (tmp_path / "other.fvocab").unlink()
    assert importing(tmp_path, tmp_path / "model", codes="other.fcodes") == 2
    assert "other.fvocab: no such file" in capsys.readouterr().err
    # The codes as a model of SentencePiece.
    assert importing(folder, tmp_path / "model", codes="langs.fvocab") == 2
    assert "is no model of SentencePiece" in capsys.readouterr().err
    torch_like.save({"cfg": {}, "params": 0}, tmp_path / "laser3.pt", before_1_6=True)
    shutil.copy(folder / "langs.fvocab", tmp_path / "other.fvocab")
    assert importing(tmp_path, tmp_path / "model", weights="laser3.pt", codes="other.fcodes") == 2
    assert "is a LASER3, whose encoder is a Transformer" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
