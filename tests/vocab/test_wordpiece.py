"""WordPiece in Python: by hand; the tokens of TF Text; a file that all programs read alike."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer
from tokenizers.models import WordPiece as HuggingFaceWordPiece

from beam_pipelines.word_counts import WordCounter
from labse_tf.demo.corpus.sources import SOURCES, list_files, read_raw_pairs
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file
from vocab.basic_tokenizer import has_other_space
from vocab.learner import learn
from vocab.wordpiece import UNKNOWN, WordPiece

SPACES = "\u00a0\u202f\u3000\u2009\u2028"
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


def test_texts_by_hand():
    wordpiece = WordPiece(PIECES, max_bytes_per_word=100)
    expected = ["ab", ".", "a", "##é", "[UNK]", "#", "ab", "ab"]
    assert wordpiece.tokenize(" ab.aé  xa#ab\u200bab ") == expected
    assert wordpiece.tokenize(" \t") == []
    text = "a\u00a0ab\u3000\u202f.\u2028b"
    assert wordpiece.tokenize(text) == ["a", "ab", ".", "b"]
    # Spaces divide words only where no piece has one.
    older = WordPiece([*PIECES, "##\u00a0", "##ab\u3000"], max_bytes_per_word=100)
    # TF Text's words: `a ab  `, the mark, and a line separator with its letter.
    assert older.tokenize(text) == ["[UNK]", ".", "[UNK]"]
    assert older.tokenize("a\u00a0ab\u3000.") == ["a", "##\u00a0", "##ab\u3000", "."]


@pytest.mark.parametrize("limit, is_too_long", [(8, True), (9, False), (100_000, False)])
def test_the_limit_is_in_bytes(limit, is_too_long):
    wordpiece = WordPiece(PIECES, max_bytes_per_word=limit)  # ไทย has 9
    assert wordpiece.is_too_long("ไทย") == is_too_long
    assert (wordpiece.split("ไทย") == (UNKNOWN,)) == is_too_long
    # Too long to be remembered.
    expected = (UNKNOWN,) if limit < 100 else ("ab", *["##b"] * 99_998)
    assert wordpiece.split("a" + "b" * 99_999) == expected


def test_refusals():
    for tokens, limit, problem in (([], 1, "tokens is empty"), (["a"], 0, "per_word is 0")):
        with pytest.raises(ValueError, match=problem):
            WordPiece(tokens, max_bytes_per_word=limit)


@pytest.fixture(scope="module")
def names():
    """Names of things in about 100 languages."""
    source = next(source for source in SOURCES if source.distribution == "babel")
    return [
        pair.foreign
        for locale, _ in list_files(source)
        for pair in itertools.islice(read_raw_pairs(locale), 60)
    ]


@pytest.fixture(scope="module")
def spaced(names):
    """Each kind of space after each name, before a mark too, as in French."""
    pairs = zip(names, itertools.cycle(SPACES), strict=False)
    return [f"{name}{space}! {name}{space}{name}" for name, space in pairs]


@pytest.fixture(scope="module")
def names_vocab_file(spaced, tmp_path_factory):
    """A vocabulary with long pieces that lacks some characters of the names."""
    counter = WordCounter()
    counter.add("xx", spaced)
    size = {"lower_thresh": 2, "max_unique_chars": 600}
    tokens = learn(counter.take()["xx"], 6000, wordpiece_file.RESERVED_TOKENS, **size)
    path = tmp_path_factory.mktemp("names") / "vocab.txt"
    wordpiece_file.write(path, tokens)
    return path


def test_every_reader_gives_each_id_the_same_token(names_vocab_file):
    tokens = wordpiece_file.read(names_vocab_file)
    assert len(tokens) > 2000 and not any(map(has_other_space, tokens))
    numbers = list(range(len(tokens)))
    table = tf_text.BertTokenizer(str(names_vocab_file))._wordpiece_tokenizer._vocab_lookup_table
    assert table.lookup(tf.constant(tokens)).numpy().tolist() == numbers
    assert HuggingFaceWordPiece.read_file(str(names_vocab_file)) == dict(
        zip(tokens, numbers, strict=True)
    )
    reader = BertWordPieceTokenizer(str(names_vocab_file), lowercase=False)
    assert [reader.id_to_token(number) for number in numbers] == tokens
    # As transformers, the original BERT, and many others read lines.
    assert [line.strip() for line in names_vocab_file.read_text("utf-8").splitlines()] == tokens


def test_text_with_other_spaces_has_the_tokens_of_hugging_face(spaced, names_vocab_file):
    # A joiner, a format character, divides words in TF Text and vanishes in Hugging Face.
    joiners = set("\u200b\u200c\u200d\u200e\u200f\u061c")
    texts = [text for text in spaced[::3] if not joiners & set(text)]
    ours = WordPieceTokenizer(names_vocab_file, max_bytes_per_word=10_000)(tf.constant(texts))
    theirs = BertWordPieceTokenizer(str(names_vocab_file), lowercase=False, strip_accents=False)
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert sum(map(len, expected)) > 5000
    assert ours.to_list() == expected


def assert_same_tokens(vocab_file, texts, limit):
    """Returns the tokens of ours and of TensorFlow's graph, which are equal."""
    original = WordPieceTokenizer(vocab_file, max_bytes_per_word=limit)
    ours = WordPiece(original.tokens, max_bytes_per_word=limit)
    rows = original(tf.constant(texts)).to_list()
    expected = [[original.tokens[token] for token in row] for row in rows]
    assert [ours.tokenize(text) for text in texts] == expected
    return expected


@settings(max_examples=30)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=20))
def test_the_tokens_of_tf_text_on_any_text_with_spaces_in_pieces(names_vocab_file, texts):
    """TF Text itself, with a vocabulary as earlier versions learned them."""
    path = names_vocab_file.with_name("older.txt")
    if not path.exists():
        pieces = ["\u00a0", "##\u00a0", "\u00a0a", "##\u00a0a", "\u3000", "##\u3000"]
        wordpiece_file.write(path, [*wordpiece_file.read(names_vocab_file), *pieces])
    original, tokens = tf_text.BertTokenizer(str(path), lower_case=False), wordpiece_file.read(path)
    rows = original.tokenize(tf.constant(texts)).merge_dims(1, 2).to_list()
    expected = [[tokens[token] for token in row] for row in rows]
    assert expected == assert_same_tokens(path, texts, 100)


def test_the_tokens_of_tf_text_on_names_in_all_scripts(names, names_vocab_file):
    # A dozen joined to a text with and without spaces.
    dozens = [names[start : start + 12] for start in range(0, len(names), 12)]
    texts = [space.join(dozen) for dozen in dozens for space in (" ", "")]
    texts += ["", " ", "แมว" * 300, "a" * 101, "ß" * 50, "[UNK] [CLS] ##a"]
    tokens = assert_same_tokens(names_vocab_file, texts, 20)
    known = [sum(token != UNKNOWN for token in row) for row in tokens]
    # Both kinds come up, or this would prove little.
    assert sum(known) > 5000 and any(UNKNOWN in row for row in tokens)


@settings(max_examples=30)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=20), limit=st.integers(1, 40))
@example(texts=["¶00", "—แa"], limit=1)  # Punctuation that is longer than the limit.
@example(texts=["¶00", "—แa"], limit=2)
def test_the_tokens_of_tf_text_on_any_text(names_vocab_file, texts, limit):
    assert_same_tokens(names_vocab_file, texts, limit)
