"""WordPiece in Python: by hand, and the tokens of TF Text on real text and on any text."""

from __future__ import annotations

import itertools
import lzma
from collections import Counter

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from repository import SHARED

from labse_tf.demo.corpus.sources import SOURCES, list_files, read_raw_pairs
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file
from vocab.basic_tokenizer import split_words
from vocab.learner import learn
from vocab.wordpiece import UNKNOWN, WordPiece

ANY_TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \u00a0\u200c.#[UNK]abcไทยé汉")
)

PIECES = ["a", "b", "ab", "##b", "##ab", "##abb", "##bc", "é", "##é", "ไ", "##ท", "##ย", "#", "."]


@pytest.mark.parametrize(
    "word, pieces",
    [
        ("a", ["a"]),
        ("ab", ["ab"]),
        # The longest piece first, at each place.
        ("abab", ["ab", "##ab"]),
        ("aabb", ["a", "##abb"]),
        ("aabbb", ["a", "##abb", "##b"]),
        # The longest match is not taken back: ab leaves c, though a ##bc would spell it.
        ("abc", ["[UNK]"]),
        # A piece inside a word begins no word, and the other way round.
        ("ท", ["[UNK]"]),
        ("aไ", ["[UNK]"]),
        ("ไทย", ["ไ", "##ท", "##ย"]),
        ("aé", ["a", "##é"]),
        ("#", ["#"]),
    ],
)
def test_pieces_by_hand(word, pieces):
    assert WordPiece(PIECES, max_bytes_per_word=100).split(word) == tuple(pieces)


def test_a_text_by_hand():
    wordpiece = WordPiece(PIECES, max_bytes_per_word=100)
    assert wordpiece.tokenize(" ab.aé  xa#ab\u200bab ") == [
        *("ab", ".", "a", "##é", "[UNK]", "#", "ab", "ab")
    ]
    assert wordpiece.tokenize(" \t") == []


@pytest.mark.parametrize("limit, is_too_long", [(8, True), (9, False), (10, False)])
def test_the_limit_is_in_bytes(limit, is_too_long):
    wordpiece = WordPiece(PIECES, max_bytes_per_word=limit)  # ไทย has 9
    assert wordpiece.is_too_long("ไทย") == is_too_long
    assert (wordpiece.split("ไทย") == (UNKNOWN,)) == is_too_long


def test_spaces_divide_words_where_no_piece_has_one():
    text = "a\u00a0ab\u3000\u202f.\u2028b"
    assert WordPiece(PIECES, max_bytes_per_word=100).tokenize(text) == ["a", "ab", ".", "b"]
    older = WordPiece([*PIECES, "##\u00a0", "##ab\u3000"], max_bytes_per_word=100)
    # TF Text's words: `a ab  `, the mark, and a line separator with its letter.
    assert older.tokenize(text) == ["[UNK]", ".", "[UNK]"]
    assert older.tokenize("a\u00a0ab\u3000.") == ["a", "##\u00a0", "##ab\u3000", "."]


def test_a_word_too_long_to_remember():
    wordpiece = WordPiece(PIECES, max_bytes_per_word=100_000)
    assert wordpiece.split("a" + "b" * 99_999) == ("ab", *["##b"] * 99_998)


@pytest.mark.parametrize(
    "tokens, limit, problem", [([], 1, "tokens is empty"), (["a"], 0, "max_bytes_per_word is 0")]
)
def test_refuses(tokens, limit, problem):
    with pytest.raises(ValueError, match=problem):
        WordPiece(tokens, max_bytes_per_word=limit)


def learn_vocabulary(texts, path):
    """A vocabulary with long pieces that lacks some characters of the texts."""
    counts = Counter(word for text in texts for word in split_words(text))
    tokens = learn(
        counts, 3000, wordpiece_file.RESERVED_TOKENS, lower_thresh=2, max_unique_chars=600
    )
    wordpiece_file.write(path, tokens)
    return path


def assert_same_tokens(vocab_file, texts, limit):
    original = WordPieceTokenizer(vocab_file, max_bytes_per_word=limit)
    ours = WordPiece(original.tokens, max_bytes_per_word=limit)
    expected = [
        [original.tokens[token] for token in row] for row in original(tf.constant(texts)).to_list()
    ]
    assert [ours.tokenize(text) for text in texts] == expected
    return expected


@pytest.fixture(scope="module")
def names():
    """Names of things in about 100 languages, a dozen joined to a text with and without spaces."""
    source = next(source for source in SOURCES if source.distribution == "babel")
    texts = []
    for locale, _ in list_files(source):
        found = [pair.foreign for pair in itertools.islice(read_raw_pairs(locale), 120)]
        for start in range(0, len(found), 12):
            texts += [" ".join(found[start : start + 12]), "".join(found[start : start + 12])]
    return texts


@pytest.fixture(scope="module")
def older_vocab_file(names_vocab_file, tmp_path_factory):
    path = tmp_path_factory.mktemp("older") / "vocab.txt"
    pieces = [joiner + piece for piece in ("\u00a0", "\u00a0a", "\u3000") for joiner in ("", "##")]
    wordpiece_file.write(path, [*wordpiece_file.read(names_vocab_file), *pieces])
    return path


@pytest.fixture(scope="module")
def names_vocab_file(names, tmp_path_factory):
    return learn_vocabulary(names, tmp_path_factory.mktemp("names") / "vocab.txt")


@settings(max_examples=60)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=20))
def test_the_tokens_of_tf_text_on_any_text_with_spaces_in_pieces(older_vocab_file, texts):
    """Of TF Text itself, for a vocabulary as earlier versions learned them."""
    tokens = wordpiece_file.read(older_vocab_file)
    original = tf_text.BertTokenizer(str(older_vocab_file), lower_case=False)
    expected = original.tokenize(tf.constant(texts)).merge_dims(1, 2).to_list()
    assert WordPieceTokenizer(older_vocab_file, max_bytes_per_word=100)(
        tf.constant(texts)
    ).to_list() == (expected)
    ours = WordPiece(tokens, max_bytes_per_word=100)
    assert [[tokens.index(t) for t in ours.tokenize(text)] for text in texts] == expected


@pytest.mark.parametrize("limit", [20, 100, 600])
def test_the_tokens_of_tf_text_on_names_in_all_scripts(names, names_vocab_file, limit):
    tokens = assert_same_tokens(names_vocab_file, names, limit)
    known = [sum(token != UNKNOWN for token in row) for row in tokens]
    # Both kinds come up, or this would prove little.
    assert sum(known) > 10_000 and any(UNKNOWN in row for row in tokens)


@pytest.mark.parametrize("limit", [9, 100, 600])
def test_the_tokens_of_tf_text_on_sentences(vocab_file, multilingual_sentences, limit):
    texts = [*multilingual_sentences, "", " ", "แมว" * 300, "a" * 101, "ß" * 50, "[UNK] [CLS] ##a"]
    assert_same_tokens(vocab_file, texts, limit)


@settings(max_examples=60)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=20), limit=st.integers(1, 40))
@example(texts=["¶00", "—แa"], limit=1)  # Punctuation that is longer than the limit.
@example(texts=["¶00", "—แa"], limit=2)
def test_the_tokens_of_tf_text_on_any_text(names_vocab_file, texts, limit):
    assert_same_tokens(names_vocab_file, texts, limit)


@settings(max_examples=200)
@given(st.text("abé.ไท ", max_size=60), st.integers(1, 60))
def test_known_pieces_spell_the_words(text, limit):
    wordpiece = WordPiece(PIECES, max_bytes_per_word=limit)
    for word in split_words(text):
        pieces = wordpiece.split(word)
        if pieces != (UNKNOWN,):
            assert pieces[0] + "".join(piece.removeprefix("##") for piece in pieces[1:]) == word
            assert not wordpiece.is_too_long(word)


@pytest.mark.shared_data
@pytest.mark.parametrize("limit", [100, 600])
def test_the_tokens_of_tf_text_on_news_in_127_languages(tmp_path, limit):
    files = sorted(SHARED.glob("ntrex128/???*.txt.xz"))
    if not files:
        pytest.skip("needs NTREX-128 in ../shared/data")
    texts = []
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8", newline="\n") as lines:
            texts += [line.rstrip("\n") for line in itertools.islice(lines, 40)]
    assert_same_tokens(learn_vocabulary(texts, tmp_path / "vocab.txt"), texts, limit)
