"""What `encode` is given: any kind of list of strings; the first item that is none is named."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hashed_encoders import HashedCharacters

import labse_tf
from labse_tf.embedding.light import WindowEncoder
from labse_tf.embedding.open import PYTHON_OBJECT, OpenedEncoder

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


def opened():
    return OpenedEncoder("toy", PYTHON_OBJECT, HashedCharacters())


ENCODERS = {"windows": Lengths, "opened": opened}
each_encoder = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)


@each_encoder
@pytest.mark.parametrize(
    "given",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pandas.Series(TEXTS, index=[7, 3, 5, 1]),
        pandas.Series(TEXTS, dtype="string"),
        dict.fromkeys(TEXTS).keys(),
        "iterator",
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_like_a_list(encoder, given):
    texts = (text for text in TEXTS) if isinstance(given, str) else given
    np.testing.assert_array_equal(encoder().encode(texts), encoder().encode(TEXTS))


@each_encoder
@pytest.mark.parametrize("item", [None, float("nan"), 7, b"bytes", pandas.NA, ["nested"]])
def test_an_item_that_is_no_string_is_named(encoder, item):
    with pytest.raises(TypeError, match=r"\b3\b"):
        encoder().encode(["a", "b", "c", item, None])


@each_encoder
@pytest.mark.parametrize("item", ["\ud83d", "a\udce9b", "\ud83d\ude00"])
def test_half_of_a_surrogate_pair_is_named(encoder, item):
    with pytest.raises(ValueError, match=r"\b4\b"):
        encoder().encode(["a", "b", "c", "😀", item])


@each_encoder
@pytest.mark.parametrize(
    "given",
    [
        "Hello",
        np.str_("Hello"),
        b"Hello",
        {"a": "b"},
        {"a", "b"},
        np.array("Hello"),
        np.array([["a", "b"]]),
        pandas.DataFrame({"text": TEXTS}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_list(encoder, given):
    with pytest.raises(TypeError, match="list of strings"):
        encoder().encode(given)


def test_nothing_gives_no_rows():
    assert Lengths().encode([]).shape == (0, 2)


def test_model_dirs_say_so_too(model_dir):
    with pytest.raises(TypeError, match=r"\b1\b"):
        labse_tf.load(model_dir).encode(["a", None])
