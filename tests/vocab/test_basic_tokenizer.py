"""Word splitting: the same words as TensorFlow Text, on real text, any text and every character."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_text.python.ops.bert_tokenizer import BasicTokenizer

from vocab.basic_tokenizer import UNICODE_SPACE, has_other_space, plain_spaces, split_words

ORIGINAL = BasicTokenizer(lower_case=False)


def original_words(texts):
    batch = ORIGINAL.tokenize([text.encode("utf-8") for text in texts]).to_list()
    return [[word.decode("utf-8") for word in words] for words in batch]


def test_hand_worked_example():
    text = "Don't go\u00adin,\u00a0你好! "
    assert split_words(text) == ["Don", "'", "t", "go", "in", ",", "\u00a0", "你", "好", "!"]


# Single characters of all kinds, with those that separate words and marks coming up often.
ANY_TEXT = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from(" \t\u00a0\u00ad\u200c.,$^'漢字あア한a")
)


@settings(max_examples=50)
@given(st.lists(ANY_TEXT, min_size=1, max_size=20))
def test_any_text(texts):
    assert [split_words(text) for text in texts] == original_words(texts)


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_every_code_point(step):
    """If this fails after an upgrade, a library now knows another version of Unicode.

    The spaces of TF's RE2 are those of `regex`, and Python's, control characters aside.
    """
    numbers = [n for n in range(0, 0x110000, step) if not 0xD800 <= n <= 0xDFFF]
    characters = list(map(chr, numbers))
    for start in range(0, len(characters), 1 << 16):
        texts = [f"a{character}b" for character in characters[start : start + (1 << 16)]]
        pairs = zip(texts, original_words(texts), strict=True)
        assert [hex(ord(text[1])) for text, words in pairs if split_words(text) != words] == []
    replaced = tf.strings.regex_replace(characters, UNICODE_SPACE, " ").numpy()
    assert [text.decode("utf-8") for text in replaced] == list(map(plain_spaces, characters))
    others = [char for char in characters if has_other_space(char)]
    assert others == [char for char in characters if char.isspace() and char > "\x9f"]
    assert step > 1 or len(others) == 18
