"""The tokeniser contract, with real text of many scripts and an independent WordPiece."""

from __future__ import annotations

import numpy as np
import pytest
import regex
import tensorflow as tf
import tensorflow_hub as hub
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file
from vocab.basic_tokenizer import split_words
from vocab.wordpiece_file import RESERVED_TOKENS, VocabularyFileError

UNKNOWN = 100


def pieces(tokenizer, text):
    return [tokenizer.tokens[token] for token in tokenizer(tf.constant([text])).to_list()[0]]


@pytest.fixture(scope="module")
def words_tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "vocab.txt"
    wordpiece_file.write(
        path,
        [
            *RESERVED_TOKENS,
            *"a b c A é e \u0301 ß . , ไ ท ย 汉 字".split(),  # noqa: SIM905
            *"##a ##b ##c ##\u0301 ##ß ##ไ ##ท ##ย ab ##ing sing s ไทย ##ไทย".split(),  # noqa: SIM905
        ],
    )
    return WordPieceTokenizer(path, max_bytes_per_word=600)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        (" \t ", []),
        ("a", ["a"]),
        ("A", ["A"]),
        ("B", ["[UNK]"]),
        ("abc", ["ab", "##c"]),
        ("abba", ["ab", "##b", "##a"]),
        ("singing", ["sing", "##ing"]),
        ("singer", ["[UNK]"]),
        ("sing", ["sing"]),
        ("sab", ["s", "##a", "##b"]),
        # Accents stay; the composed letter and the letter with its mark are two spellings.
        ("é", ["é"]),
        ("e\u0301", ["e", "##\u0301"]),
        ("aß", ["a", "##ß"]),
        # One letter that no piece spells makes the whole word unknown, its neighbours not.
        ("abxa a", ["[UNK]", "a"]),
        ("a.b,", ["a", ".", "b", ","]),
        ("a汉字b", ["a", "汉", "字", "b"]),
        ("ไทยไทย", ["ไทย", "##ไทย"]),
        # Control and format characters are white space.
        ("a\u200bb", ["a", "b"]),
        ("a\u0000b\ufeffc", ["a", "b", "c"]),
        ("a\tb\r\nc\x0bab", ["a", "b", "c", "ab"]),
        # TF Text would find three [UNK]: the vocabulary has no piece with such a space.
        ("a\u00a0b \u3000 a\u2028b\u202f!", ["a", "b", "a", "b", "[UNK]"]),
    ],
)
def test_pieces_by_hand(words_tokenizer, text, expected):
    assert pieces(words_tokenizer, text) == expected


def test_special_tokens(tokenizer):
    assert {name: int(value) for name, value in tokenizer.special_tokens.items()} == {
        "vocab_size": len(tokenizer.tokens),
        "padding_id": 0,
        "start_of_sequence_id": 101,
        "end_of_segment_id": 102,
        "mask_id": 103,
    }


def test_many_scripts_are_spelt_whole(tokenizer, multilingual_sentences):
    """Nothing is lost or changed: the pieces, joined, are the text without its spaces."""
    for text in multilingual_sentences:
        found = pieces(tokenizer, text)
        assert "[UNK]" not in found
        assert "".join(piece.removeprefix("##") for piece in found) == text.replace(" ", "")


def test_the_same_words_as_the_vocabulary_learner(tokenizer, multilingual_sentences):
    """The vocabulary is learnt from words split in Python: TF Text must split them alike."""
    for text in multilingual_sentences:
        words = []
        for piece in pieces(tokenizer, text):
            if piece.startswith("##") and len(piece) > 2:
                words[-1] += piece[2:]
            else:
                words.append(piece)
        assert words == list(split_words(text))


def test_a_word_of_600_bytes_is_spelt_and_a_longer_one_is_unknown(tokenizer):
    # 20 times the 10 letters of หนังสือกด is no word; แมว repeated is 3 letters of 3 bytes.
    fits = "แมว" * 66 + "แม"
    assert len(fits.encode("utf-8")) == 600
    found = pieces(tokenizer, fits)
    assert len(found) == 200 and "[UNK]" not in found
    assert pieces(tokenizer, fits + "ว") == ["[UNK]"]
    # The limit is a word's, not a text's.
    assert "[UNK]" not in pieces(tokenizer, f"{fits} {fits}")


def test_the_limit_is_configuration(vocab_file):
    short = WordPieceTokenizer(vocab_file, max_bytes_per_word=9)
    assert "[UNK]" not in pieces(short, "แมว")
    assert pieces(short, "แมวแ แมว")[0] == "[UNK]"


def _odd_characters():
    """Every character of a category that divides words, and others of all planes."""
    characters = (chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000)
    kinds = regex.compile(r"[\p{P}\p{Z}\p{Cc}\p{Cf}\p{S}\p{M}]")
    return [c for n, c in enumerate(characters) if n % 200 == 0 or kinds.match(c)]


@pytest.mark.parametrize("form", ["{}", "a{}b", "the {}1"])
def test_each_character_divides_words_as_in_the_exported_layer(tokenizer, form):
    texts = tf.constant([form.format(character) for character in _odd_characters()])
    expected = tokenizer.layer(texts).merge_dims(1, 2)
    found = tokenizer(texts)
    np.testing.assert_array_equal(found.row_splits, expected.row_splits)
    np.testing.assert_array_equal(found.flat_values, expected.flat_values)


@given(words=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=12), data=st.data())
@settings(max_examples=40)
def test_pieces_of_any_vocabulary_as_in_the_exported_layer(words, data, tmp_path_factory):
    """Also of one with pieces that can never be found, such as `[MASK]` or `don't`."""
    letters = sorted(set("".join(words)))
    pieces_ = [*RESERVED_TOKENS, *words, *(f"##{word}" for word in words), *letters, "don't"]
    file = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    try:
        wordpiece_file.write(file, list(dict.fromkeys(pieces_)))
    except VocabularyFileError:
        reject()
    made = WordPieceTokenizer(file, max_bytes_per_word=12)
    some = st.lists(st.sampled_from([*words, *letters, "[MASK]", " ", "don't", "."]), max_size=8)
    texts = tf.constant(["".join(data.draw(some)) for _ in range(8)])
    assert made(texts).to_list() == made.layer(texts).merge_dims(1, 2).to_list()


def packed(tokenizer, *segments, length):
    inputs = tokenizer.pack([tf.ragged.constant(s, dtype=tf.int32) for s in segments], length)
    return {name: value.numpy().tolist() for name, value in inputs.items()}


def test_pack_one_segment_by_hand(tokenizer):
    assert packed(tokenizer, [[5, 6, 7], [], [5, 6, 7, 8, 9]], length=6) == {
        "input_word_ids": [
            [101, 5, 6, 7, 102, 0],
            [101, 102, 0, 0, 0, 0],
            [101, 5, 6, 7, 8, 102],
        ],
        "input_mask": [[1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]],
        "input_type_ids": [[0] * 6] * 3,
    }


def test_pack_two_segments_by_hand(tokenizer):
    # Round-robin: of 5 places the shorter side keeps what it has, the longer one the rest.
    assert packed(tokenizer, [[5, 6, 7, 8, 9], [5]], [[10, 11], [12]], length=8) == {
        "input_word_ids": [[101, 5, 6, 7, 102, 10, 11, 102], [101, 5, 102, 12, 102, 0, 0, 0]],
        "input_mask": [[1] * 8, [1, 1, 1, 1, 1, 0, 0, 0]],
        "input_type_ids": [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0, 0]],
    }


def test_the_exported_preprocessor_does_the_same(tokenizer, model_dir, multilingual_sentences):
    texts = [*multilingual_sentences, "", "แมว" * 66, "แมว" * 67, "a\u200bb", "e" * 200]
    strings = tf.constant(texts)
    expected = tokenizer.pack([tokenizer(strings)], 128)
    preprocessor = hub.KerasLayer(str(model_dir / "preprocessor"))
    found = preprocessor(strings)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    loaded = tf.saved_model.load(str(model_dir / "preprocessor"))
    assert loaded.tokenize(strings).merge_dims(1, 2).to_list() == tokenizer(strings).to_list()
    unknown = (found["input_word_ids"].numpy() == UNKNOWN).any(axis=1)
    assert [text for text, is_unknown in zip(texts, unknown, strict=True) if is_unknown] == [
        "แมว" * 67
    ]


def test_a_broken_vocabulary_is_refused(tmp_path, vocab_file):
    lines = vocab_file.read_text("utf-8").splitlines()
    lines[100] = "[NUK]"
    broken = tmp_path / "vocab.txt"
    broken.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(VocabularyFileError) as caught:
        WordPieceTokenizer(broken, max_bytes_per_word=600)
    assert "[UNK]" in str(caught.value)
