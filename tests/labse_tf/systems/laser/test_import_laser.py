"""Published LASERs, with random weights of their layouts, become model dirs with their vectors."""

from __future__ import annotations

import argparse
import json
import pickle
import random
import shutil
import zipfile
from collections import Counter

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import torch_like
from laser_content import laser_content, reference
from tiny_text import LANGUAGES, SENTENCES, sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError
from labse_tf.systems.laser import words as laser_words
from labse_tf.systems.laser.import_laser import import_laser
from labse_tf.systems.laser.tokenizers import SPECIAL_TOKENS, LaserTokenizer, normalize
from labse_tf.systems.laser.torch_files import read_torch_file


def importing(folder, weights, pieces, out, *options):
    command = ["import-laser", str(folder / weights), str(folder / pieces), "--out", str(out)]
    return main([*command, "--length", "24", *options])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# LASER2.


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


@pytest.fixture(scope="module")
def model_dir(folder):
    out = folder / "model"
    options = ("--format", "hub", "--no-verify")
    assert importing(folder, "laser.pt", "laser.spm", out, *options) == 0
    return out


# Neither has anything that Moses' rules change, but for spaces around them.
TEXTS = [*(text for text in SENTENCES if not set(text) & set("’“”«»")), "", "Ω unseen ☃☃", "x" * 90]


def expected_ids(folder, text):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "laser.spm"))
    known = {**read_torch_file(folder / "laser.pt")["dictionary"], **SPECIAL_TOKENS}
    return [known.get(one, 3) for one in pieces.encode(text.lower().strip(), out_type=str)]


def test_ids_are_the_dictionarys(folder):
    dictionary = read_torch_file(folder / "laser.pt")["dictionary"]
    tokenizer = LaserTokenizer(folder / "laser.spm", dictionary)
    found = tokenizer(tf.constant(TEXTS)).to_list()
    assert found == [expected_ids(folder, text) for text in TEXTS]
    assert 3 in found[-2]
    packed = tokenizer.pack([tokenizer(tf.constant(["a", ""]))], 5)
    (one,) = expected_ids(folder, "a")
    assert packed["input_word_ids"].numpy().tolist() == [[one, 2, 1, 1, 1], [2, 1, 1, 1, 1]]
    assert packed["input_mask"].numpy().tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    one = tokenizer(tf.constant(["a"]))
    packed = tokenizer.pack([one, one], tf.constant(6))
    assert packed["input_type_ids"].numpy().tolist() == [[0, 0, 1, 1, 0, 0]]


def test_vectors_are_lasers(folder, model_dir):
    content = read_torch_file(folder / "laser.pt")
    ids = [expected_ids(folder, text)[:23] for text in TEXTS]
    expected = np.stack([reference(content, [*one, 2]) for one in ids])
    encoder = tf.saved_model.load(str(model_dir / "encoder"))
    preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
    found = encoder(preprocessor(tf.constant(TEXTS)))["default"].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_it_is_a_model_dir_by_the_interface(folder, tmp_path):
    """And cuts texts to 512 tokens."""
    files = [str(folder / name) for name in ("laser.pt", "laser.spm")]
    out = tmp_path / "model"
    assert main(["import-laser", *files, "--out", str(out), "--format", "hub,text,onnx"]) == 0
    model = labse_tf.load(out)
    assert model.sequence_length == 512
    found = labse_tf.load(out / "onnx" / "model.onnx").encode(TEXTS)
    np.testing.assert_allclose(found, model.encode(TEXTS), atol=1e-5)


def test_the_facts_and_no_further_training(model_dir, config_file, tmp_path, capsys):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["tokenizer"] == "laser" and facts["encoder"]["network"] == "bilstm"
    card = (model_dir / "README.md").read_text("utf-8")
    assert "SentencePieces of LASER" in card and "lower-cased, as by LASER" in card
    command = ["train", str(config_file), "--run-dir", str(tmp_path / "run")]
    assert main([*command, "--init", str(model_dir)]) == 2
    assert "has LASER's tokeniser, which training does not know" in capsys.readouterr().err


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
    content = read_torch_file(folder / "laser.pt")
    change(content)
    torch_like.save(content, tmp_path / "other.pt")
    with pytest.raises(InputError, match=message):
        import_laser(tmp_path / "other.pt", folder / "laser.spm", tmp_path / "model")


def test_files_of_other_kinds_are_named(folder, tmp_path, capsys):
    with zipfile.ZipFile(folder / "laser3.pt", "w") as archive:
        content = pickle.dumps({"cfg": argparse.Namespace(), "model": {}}, protocol=2)
        archive.writestr("archive/data.pkl", content)
    for weights, pieces, message in (
        ("none.pt", "laser.spm", "none.pt"),
        ("laser.pt", "none.spm", "none.spm"),
        ("laser.pt", "laser.pt", "is no model of SentencePiece"),
        ("laser3.pt", "laser.spm", "is a checkpoint of fairseq (it names argparse.Namespace)"),
    ):
        assert importing(folder, weights, pieces, tmp_path / "out") == 2
        assert message in capsys.readouterr().err


# The encoder of 2018.

# Text, its language, and its words by Moses' rules.
TEXTS_2018 = [
    ("The cat sees the house.", "en", "the cat sees the house ."),
    ("The dog doesn't see the cat's house!", "en", "the dog doesn 't see the cat 's house !"),
    ("L'été, c'est l'océan que j'ai vu.", "fr", "l' été , c' est l' océan que j' ai vu ."),
    ("Кошка видит дом, а собака нет.", "ru", "кошка видит дом , а собака нет ."),
    ("", "en", ""),
    ("the " * 30 + "house", "en", "the " * 30 + "house"),
]


@pytest.fixture(autouse=True)
def no_abbreviations(monkeypatch):
    """Those of sacremoses are not needed here."""
    monkeypatch.setattr(laser_words, "_abbreviations", lambda language: [])


def learn(words, merges):
    """Byte-pair encodings by the book: join the most frequent pair, again and again."""
    pieces = {word: [*word[:-1], word[-1] + "</w>"] for word in words}
    pairs = []
    for _ in range(merges):
        found = (zip(word, word[1:], strict=False) for word in pieces.values())
        counts = Counter(pair for word in found for pair in word)
        best = max(sorted(counts), key=counts.__getitem__)
        pairs.append(best)
        for word in pieces.values():
            place = 0
            while place < len(word) - 1:
                if tuple(word[place : place + 2]) == best:
                    word[place : place + 2] = ["".join(best)]
                place += 1
    return pairs, pieces


def as_text(pieces):
    return [f"{piece}@@" for piece in pieces[:-1]] + [pieces[-1].removesuffix("</w>")]


WORDS = sorted({word for *_, words in TEXTS_2018 for word in words.split()})
PAIRS, PIECES = learn(WORDS, 40)


@pytest.fixture(scope="module")
def folder_2018(tmp_path_factory):
    """As published: the weights of an old PyTorch, codes, and their vocabulary."""
    folder = tmp_path_factory.mktemp("laser_2018")
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


def import_2018(folder, out, *options, codes="langs.fcodes"):
    return importing(folder, "bilstm.pt", codes, out, *options)


@pytest.fixture(scope="module")
def model_2018(folder_2018):
    assert import_2018(folder_2018, folder_2018 / "model", "--format", "hub,onnx") == 0
    return folder_2018 / "model"


def expected_vectors(folder):
    content = read_torch_file(folder / "bilstm.pt")
    rows = []
    for *_, words in TEXTS_2018:
        pieces = [piece for word in words.split() for piece in as_text(PIECES[word])]
        ids = [content["dictionary"].get(piece, 3) for piece in pieces][:23]
        rows.append(reference(content, [*ids, 2]))
    assert len(content["dictionary"]) > 30
    return unit(np.stack(rows))


@pytest.mark.slow
def test_vectors_are_those_of_2018(folder_2018, model_2018):
    """By an LSTM in NumPy, of words and pieces that are found without the code under test."""
    expected = expected_vectors(folder_2018)
    for file in ("", "onnx/model.onnx"):
        found = open_encoder(str(model_2018 / file)).encode([text for text, *_ in TEXTS_2018])
        np.testing.assert_allclose(found, expected, atol=1e-5)
    model = labse_tf.load(model_2018, language="en")
    english = [number for number, (_, code, _) in enumerate(TEXTS_2018) if code == "en"]
    found = model.encode([TEXTS_2018[number][0] for number in english])
    np.testing.assert_allclose(found, expected[english], atol=1e-5)
    # One has more tokens than the model takes.
    assert model.texts_cut == 1 and model.sequence_length == 24


@pytest.mark.slow
def test_the_commands_embed_mine_and_score(folder_2018, model_2018, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = str(model_2018)
    lines = [text for text, *_ in TEXTS_2018 if text][:4]
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), "utf-8")
    assert main(["embed", model, "text.txt", "--out", "auto.npy"]) == 0
    assert main(["embed", model, "text.txt", "--out", "fr.npy", "--language", "fr"]) == 0
    auto, french = np.load("auto.npy"), np.load("fr.npy")
    np.testing.assert_allclose(auto, expected_vectors(folder_2018)[:4], atol=1e-5)
    # Apostrophes are another matter in French.
    same = [np.allclose(*pair, atol=1e-5) for pair in zip(auto, french, strict=True)]
    assert same == [True, False, True, True]
    assert main(["mine", model, "text.txt", "text.txt", "--out", "mined.tsv"]) == 0
    mined = [line.split("\t") for line in (tmp_path / "mined.tsv").read_text("utf-8").splitlines()]
    assert {row[-2] for row in mined} == {row[-1] for row in mined} == set(lines)
    assert main(["score", model, "pairs.tsv", "--out", "scored.tsv"]) == 0
    scored = (tmp_path / "scored.tsv").read_text("utf-8").splitlines()
    assert [float(line.split("\t")[0]) for line in scored] == pytest.approx([1.0] * 4, abs=1e-4)


@pytest.mark.slow
def test_the_folder_of_2018(model_2018):
    facts = json.loads((model_2018 / "model.json").read_text("utf-8"))
    assert facts["tokenizer"] == "laser-2018" and facts["formats"] == ["hub", "onnx"]
    names = sorted(path.name for path in model_2018.iterdir())
    assert names == ["README.md", "encoder", "model.json", "onnx", "tokenizer"]
    card = (model_2018 / "README.md").read_text("utf-8")
    assert "byte-pair encodings of LASER" in card and 'hub.KerasLayer("preprocessor")' not in card


@pytest.mark.slow
def test_the_vectors_of_2018_depend_on_the_codes(model_2018, tmp_path):
    one = open_encoder(str(model_2018)).facts()["model_sha256"]
    shutil.copytree(model_2018, tmp_path / "other")
    (tmp_path / "other" / "tokenizer" / "bpe.vocab").write_text("a 1\n", "utf-8")
    assert open_encoder(str(tmp_path / "other")).facts()["model_sha256"] != one


@pytest.mark.slow
def test_commands_that_need_a_preprocessor_refuse_it(model_2018, config_file, tmp_path, capsys):
    no_training = "has LASER's tokeniser, which training does not know"
    train = ["train", str(config_file), "--run-dir", str(tmp_path), "--init"]
    for command, message in (
        (["verify"], "text is prepared in Python: it has no preprocessor"),
        (["export", "--out", str(tmp_path / "out")], no_training),
        (train, no_training),
    ):
        assert main([*command, str(model_2018)]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(InputError, match="splits text of all languages alike"):
        open_encoder("hashed_encoders:cased", language="fr")


@pytest.mark.slow
def test_the_default_format_and_a_smaller_table(folder_2018, tmp_path):
    assert import_2018(folder_2018, tmp_path / "model", "--table", "int8") == 0
    assert not (tmp_path / "model" / "text_encoder").exists()
    found = labse_tf.load(tmp_path / "model").encode([text for text, *_ in TEXTS_2018])
    assert np.sum(found * expected_vectors(folder_2018), axis=1).min() > 0.999


@pytest.mark.parametrize("name", ["hub,lite", "hf", "onnx"])
def test_formats_that_cannot_be_had(folder_2018, tmp_path, name, capsys):
    assert import_2018(folder_2018, tmp_path / "model", "--format", name) == 2
    assert "LASER's encoder of 2018 cannot be written" in capsys.readouterr().err


def test_codes_of_other_models_are_refused(folder_2018, tmp_path, capsys):
    for name in ("langs.fcodes", "bilstm.pt"):
        shutil.copy(folder_2018 / name, tmp_path)
    vocabulary = tmp_path / "langs.fvocab"
    vocabulary.write_text("x 1\ny@@ 1\n", "utf-8")
    assert import_2018(tmp_path, tmp_path / "model") == 2
    assert "langs.fvocab: the dictionary of the weights lacks 2 of its 2" in capsys.readouterr().err
    vocabulary.unlink()
    assert import_2018(tmp_path, tmp_path / "model") == 2
    assert "langs.fvocab: no such file" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
