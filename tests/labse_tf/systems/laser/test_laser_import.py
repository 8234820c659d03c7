"""LASER2's files, with random weights of its shapes, become a model dir with its vectors."""

from __future__ import annotations

import argparse
import json
import pickle
import random
import zipfile

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import torch_like
from laser_content import laser_content, reference
from tiny_text import LANGUAGES, SENTENCES, sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.systems.laser.import_laser2 import import_laser
from labse_tf.systems.laser.tokenizer import LaserTokenizer, normalize

SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """laser.spm and laser.pt; ids of the dictionary are in another order than those of the spm."""
    folder = tmp_path_factory.mktemp("laser")
    texts = [text.lower() for text in SENTENCES]
    texts += [text.lower() for language in LANGUAGES for text in sentences_of(language)]
    with open(folder / "laser.spm", "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            model_type="bpe",
            vocab_size=400,
            character_coverage=1.0,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "laser.spm"))
    names = [pieces.id_to_piece(n) for n in range(3, pieces.get_piece_size())]
    # Some pieces are not in the dictionary, as in LASER's.
    random.Random(1).shuffle(names)
    dictionary = {name: number for number, name in enumerate(names[:-5], 4)}
    torch_like.save(laser_content(dictionary), folder / "laser.pt")
    return folder


def read(folder):
    from labse_tf.systems.laser.torch_files import read_torch_file

    return read_torch_file(folder / "laser.pt")


@pytest.fixture(scope="module")
def model_dir(folder):
    """Checked by `labse verify`."""
    out = folder / "model"
    command = ["import-laser", str(folder / "laser.pt"), str(folder / "laser.spm")]
    assert main([*command, "--out", str(out), "--format", "hub,text,onnx"]) == 0
    return out


# Neither has anything that Moses' rules change, but for spaces around them.
TEXTS = [*(text for text in SENTENCES if not set(text) & set("’“”«»")), "", "Ω unseen ☃☃", "x" * 90]


def expected_ids(folder, text):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "laser.spm"))
    known = {**read(folder)["dictionary"], **SPECIAL}
    return [known.get(one, 3) for one in pieces.encode(text.lower().strip(), out_type=str)]


def test_ids_are_the_dictionarys(folder):
    tokenizer = LaserTokenizer(folder / "laser.spm", read(folder)["dictionary"])
    found = tokenizer(tf.constant(TEXTS)).to_list()
    assert found == [expected_ids(folder, text) for text in TEXTS]
    assert 3 in found[-2]
    packed = tokenizer.pack([tokenizer(tf.constant(["a", ""]))], 5)
    one = expected_ids(folder, "a")
    assert packed["input_word_ids"].numpy().tolist() == [
        [*one, 2, *[1] * (4 - len(one))],
        [2, 1, 1, 1, 1],
    ]
    assert packed["input_mask"].numpy().tolist() == [
        [1] * (len(one) + 1) + [0] * (4 - len(one)),
        [1, 0, 0, 0, 0],
    ]


def test_vectors_are_lasers(folder, model_dir):
    content = read(folder)
    expected = np.stack([reference(content, [*expected_ids(folder, text), 2]) for text in TEXTS])
    encoder = tf.saved_model.load(str(model_dir / "encoder"))
    preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
    found = encoder(preprocessor(tf.constant(TEXTS)))["default"].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    for file in ("", "onnx/model.onnx"):
        np.testing.assert_allclose(labse_tf.load(model_dir / file).encode(TEXTS), unit, atol=1e-5)


def test_it_is_not_trained_further(model_dir, config_file, tmp_path, capsys):
    command = ["train", str(config_file), "--run-dir", str(tmp_path / "run")]
    assert main([*command, "--init", str(model_dir)]) == 2
    assert "has LASER's tokeniser, which training does not know" in capsys.readouterr().err


def test_the_facts(model_dir):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["tokenizer"] == "laser" and facts["encoder"]["network"] == "bilstm"
    card = (model_dir / "README.md").read_text("utf-8")
    assert "SentencePieces of LASER" in card and "lower-cased, as by LASER" in card


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Größe, STRASSE und Übermut", "größe, strasse und übermut"),
        ("a ( b ) c : d ; e", "a (b) c: d; e"),
        ("“Quoted” „and“ ‘this’", '"quoted" "and" "this"'),
        ("don’t l‘été", "don't l\"été"),
        ("one – two — three…", "one - two - three..."),
        ("«\u00a0oui\u00a0» « non »", '"oui" " non "'),
        ('he said "no".', 'he said "no."'),
        ("12 % of 1\u00a0000\u00a0cm", "12% of 1.000 cm"),
        ("tab\there\u200b\u0007 and  two", "tab here and two"),
        ("  猫は家を見ます。 ", "猫は家を見ます。"),
        ("``x''", '" x " '.strip()),
    ],
)
def test_text_is_normalised_as_lasers(text, expected):
    assert normalize(tf.constant([text]))[0].numpy().decode() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("params"), "is no encoder of LASER"),
        (lambda content: content.update(cfg={}, params=0), "is a LASER3"),
        (lambda content: content["params"].update(bidirectional=False), "has other parameters"),
        (lambda content: content["params"].update(hidden_size=7), "has no lstm.bias_ih_l0 of"),
        (lambda content: content["model"].pop("lstm.bias_hh_l1"), "has no lstm.bias_hh_l1 of"),
        (lambda content: content["model"].update(more=np.ones(1, "f4")), "LASER's encoders lack"),
        (
            lambda content: content.update(dictionary={"x": 4}),
            "the dictionary of the weights lacks",
        ),
    ],
)
def test_other_files_are_refused(folder, tmp_path, change, message):
    content = read(folder)
    change(content)
    torch_like.save(content, tmp_path / "other.pt")
    with pytest.raises(InputError, match=message):
        import_laser(tmp_path / "other.pt", folder / "laser.spm", tmp_path / "model")


def test_a_checkpoint_of_fairseq_is_refused_by_name(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "laser3.pt", "w") as archive:
        content = pickle.dumps({"cfg": argparse.Namespace(), "model": {}}, protocol=2)
        archive.writestr("archive/data.pkl", content)
    with pytest.raises(InputError, match="is a checkpoint of fairseq .it names argparse.Namespace"):
        import_laser(tmp_path / "laser3.pt", folder / "laser.spm", tmp_path / "model")


def test_a_missing_file_is_said(folder, tmp_path, capsys):
    for files in (("none.pt", "laser.spm"), ("laser.pt", "none.spm")):
        command = ["import-laser", *(str(folder / file) for file in files)]
        assert main([*command, "--out", str(tmp_path / "model")]) == 2
        assert "none." in capsys.readouterr().err


def test_a_file_without_pieces_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="is no model of SentencePiece"):
        import_laser(folder / "laser.pt", folder / "laser.pt", tmp_path / "model")
