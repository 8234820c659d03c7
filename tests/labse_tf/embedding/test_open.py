"""Encoders opened by name: what they are given and return, their facts, and what is refused."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import pandas
import pytest
from hashed_encoders import Broken, HashedCharacters, Table

from labse_tf.embedding.light import WindowEncoder
from labse_tf.embedding.open import MADE_UNIT, UNIT_ALREADY, OpenedEncoder, open_encoder
from labse_tf.errors import InputError

TEXTS = ["Xin chào", "안녕", "", "line\u2028separator"]


class Lengths(WindowEncoder):
    """The windows that all encoders of a model dir share, with a toy's vectors."""

    dim, sequence_length, _texts_per_window = 2, 9, 3

    def _tokenize(self, texts):
        return [text.encode() for text in texts]

    def _lengths(self, tokens):
        return np.array([len(one) for one in tokens])

    def _encode_window(self, tokens, vectors, progress):
        vectors[:] = [[len(one), 1] for one in tokens]


def opened(model=None, leading=None):
    return OpenedEncoder("m", "Python object", model or HashedCharacters(), leading=leading)


each_encoder = pytest.mark.parametrize("encoder", [Lengths, opened])


@each_encoder
def test_anything_like_a_list_is_taken(encoder):
    expected = encoder().encode(TEXTS)
    for given in (
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pandas.Series(TEXTS, index=[7, 3, 5, 1]),
        pandas.Series(TEXTS, dtype="string"),
        dict.fromkeys(TEXTS).keys(),
        (text for text in TEXTS),
    ):
        np.testing.assert_array_equal(encoder().encode(given), expected)
    assert len(Lengths().encode([])) == 0


@each_encoder
def test_anything_else_is_refused(encoder):
    for item in (None, float("nan"), 7, b"bytes", pandas.NA, ["nested"]):
        with pytest.raises(TypeError, match=r"\b3\b"):
            encoder().encode(["a", "b", "😀", item, None])
    for item in ("\ud83d", "a\udce9b", "\ud83d\ude00"):
        with pytest.raises(ValueError, match=r"\b3\b"):
            encoder().encode(["a", "b", "😀", item, None])
    arrays = (np.array("Hello"), np.array([["a", "b"]]), pandas.DataFrame({"text": TEXTS}))
    for given in ("Hello", np.str_("Hello"), b"Hello", {"a": "b"}, {"a", "b"}, *arrays):
        with pytest.raises(TypeError, match="list of strings"):
            encoder().encode(given)


@pytest.mark.parametrize(
    "name, dim", [("hashed", 64), ("HashedCharacters", 64), ("make_hashed", 32)]
)
def test_an_object_a_class_or_a_function_that_makes_one(name, dim):
    encoder = open_encoder(f"hashed_encoders:{name}")
    texts = ["Katze", "แมว", "кошка"]
    vectors = encoder.encode(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (3, dim))
    np.testing.assert_array_equal(vectors, HashedCharacters(dim).encode(texts))
    facts = {"kind": "Python object", "dim": dim, "normalisation": UNIT_ALREADY, "texts_cut": None}
    assert facts.items() <= encoder.facts().items()


def test_modules_of_the_current_folder(tmp_path, monkeypatch):
    code = "from hashed_encoders import hashed\nclass box:\n    inner = hashed\n"
    (tmp_path / "my_own_encoder.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    before = list(sys.path)
    assert open_encoder("my_own_encoder:box.inner").dim == 64
    assert sys.path == before


def test_rows_of_another_length_are_scaled_and_zeros_stay():
    encoder = opened(Table({"a": [3.0, 4.0], "b": [0.0, 0.0], "c": [0.0, 0.5]}))
    np.testing.assert_allclose(encoder.encode(["c", "b", "a"]), [[0, 1], [0, 0], [0.6, 0.8]])
    facts = encoder.facts()
    assert (facts["normalisation"], facts["zero_vectors"], facts["dim"]) == (MADE_UNIT, 1, 2)
    assert encoder.encode([]).shape == (0, 2)


def test_anything_but_a_finite_row_per_text_is_refused():
    for value, problem in (
        (np.zeros((2, 3), np.float32), "float32 [2, 3]"),
        (np.zeros(1, np.float32), "float32 [1]"),
        (np.zeros((1, 3), np.int64), "int64 [1, 3]"),
        (None, "object []"),
        (np.array([[1.0, np.nan]]), "NaN or infinity for text 0"),
    ):
        with pytest.raises(InputError, match=re.escape(problem)):
            opened(Broken(value)).encode(["one"])


def test_names_of_nothing(pytestconfig, monkeypatch):
    monkeypatch.chdir(pytestconfig.rootpath)
    for name, problem in (
        ("hashed_encoders:missing", "no 'missing'"),
        ("no_such_module_here:x", "cannot import no_such_module_here"),
        ("hashed_encoders:number", "has no encode()"),
        ("hashed_encoders:needs_an_argument", "without arguments"),
        ("hashed_encoders:makes_nothing", "returned a NoneType"),
        ("tests", "is not a model"),
        ("README.md", "is a file"),
    ):
        with pytest.raises(InputError, match=re.escape(problem)):
            open_encoder(name)


def test_without_the_library_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "modules.json").write_text("[]")
    for name in (str(tmp_path), "owner/name"):
        with pytest.raises(InputError, match=r"pip install sentence-transformers"):
            open_encoder(name)


class Peer:
    """Stands for `sentence_transformers`, which the tests do without."""

    max_seq_length = 7

    def __init__(self, name):
        if name == "owner/broken":
            raise OSError("no such repository\nmore lines")

    def encode(self, texts, **options):
        return HashedCharacters().encode(texts)


def test_sentence_transformers(tmp_path, monkeypatch):
    """Of a folder the hash follows names and contents."""
    module = types.SimpleNamespace(SentenceTransformer=Peer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    (tmp_path / "modules.json").write_text("[]")
    published, folder = open_encoder("owner/name"), open_encoder(str(tmp_path))
    np.testing.assert_array_equal(folder.encode(["a"]), HashedCharacters().encode(["a"]))
    facts = {"kind": "sentence-transformers", "sequence_length": 7, "texts_cut": None}
    assert facts.items() <= published.facts().items() and "model_sha256" not in published.facts()
    (tmp_path / "modules.json").rename(tmp_path / "modules.txt")
    (tmp_path / "modules.json").write_text("[]")
    other = open_encoder(str(tmp_path)).facts()["model_sha256"]
    assert len(other) == 64 and other != folder.facts()["model_sha256"]
    with pytest.raises(InputError, match=r"cannot load it \(no such repository\)"):
        open_encoder("owner/broken")


def test_the_leading_columns_alone():
    table = {"a": [0.48, 0.64, 0.6], "b": [0.0, 0.0, 1.0], "c": [-3.0, 0.0, 1.0]}
    encoder = opened(Table(table), leading=2)
    found = encoder.encode(["a", "b", "c"])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [-1, 0]], atol=1e-6)
    facts = {"normalisation": MADE_UNIT, "zero_vectors": 1, "dim": 2, "leading_columns": 2}
    assert facts.items() <= encoder.facts().items()
    assert encoder.encode([]).shape == (0, 2)
    name, texts = "hashed_encoders:hashed", ["Katze", "แมว"]
    found = open_encoder(name, dim=64)
    np.testing.assert_array_equal(found.encode(texts), open_encoder(name).encode(texts))
    assert found.dim == 64 and "leading_columns" not in open_encoder(name).facts()


def test_columns_that_are_not_there():
    for dim, problem in ((65, "has vectors of 64 dimensions, and --dim is 65"), (0, "--dim is 0")):
        with pytest.raises(InputError, match=problem):
            open_encoder("hashed_encoders:hashed", dim=dim)
    # An encoder that does not tell its dimension is refused when it encodes.
    encoder = opened(Table({"a": [3.0, 4.0]}), leading=3)
    with pytest.raises(InputError, match="has vectors of 2 dimensions, and --dim is 3"):
        encoder.encode(["a"])
