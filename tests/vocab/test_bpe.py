"""Byte-pair encodings: what is learned, and the model that a vocabulary file amounts to."""

from __future__ import annotations

import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from tiny_text import LANGUAGES, SENTENCES, sentences_of

from vocab import bpe, wordpiece_file

RESERVED = list(wordpiece_file.RESERVED_TOKENS)
RESERVED[1] = "[bpe]"


TEXTS = [("en", one) for one in SENTENCES]
TEXTS += [(language, one) for language in LANGUAGES for one in sentences_of(language)]


@pytest.fixture(scope="module")
def tokens():
    return bpe.learn(bpe.smooth(bpe.count_words(TEXTS), 0.3), 500, coverage=1.0)


@pytest.fixture(scope="module")
def processor(tokens):
    return sentencepiece.SentencePieceProcessor(model_proto=bpe.model_of(tokens))


def test_merges_by_hand():
    """The most frequent pair is "ab", then with the word's start before it; then the characters."""
    tokens = bpe.learn({"abc": 4, "abd": 2}, 104 + 7, coverage=1.0)
    assert tokens[:104] == RESERVED
    start = bpe.WORD_START
    assert tokens[104:106] == ["ab", f"{start}ab"]
    assert set(tokens[106:]) == {"a", "b", "c", "d", start}
    assert bpe.is_bpe(tokens)
    # Text may have the character that marks the start of words.
    assert not bpe.is_bpe([*wordpiece_file.RESERVED_TOKENS, "a", "##b", start, f"##{start}"])
    assert not bpe.is_bpe([])


def test_words_are_weighted_as_by_smoothing():
    """With exponent 0, both languages weigh 5 of the 10 words."""
    counts = bpe.count_words([("en", "a a a b"), ("en", "a a a a"), ("ja", "猫 犬"), ("ar", " ")])
    assert bpe.smooth(counts, 1.0) == {"a": 7, "b": 1, "猫": 1, "犬": 1}
    # 5 / 8 for each English word, so b is rounded up to 1; 5 / 2 for each Japanese one.
    assert bpe.smooth(counts, 0.0) == {"a": 4, "b": 1, "猫": 2, "犬": 2}


def test_the_file_is_all_that_there_is_to_the_model(tokens, processor):
    """The model made of the tokens splits as the one that SentencePiece learned."""
    model, lines = io.BytesIO(), [text for _, text in TEXTS]
    options = {"model_type": "bpe", "vocab_size": 300, "hard_vocab_limit": False}
    options |= {"normalization_rule_name": "identity", "bos_id": -1, "eos_id": -1}
    options |= {"character_coverage": 1.0, "minloglevel": 2, "model_writer": model}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), **options)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    names = [theirs.id_to_piece(number) for number in range(1, theirs.get_piece_size())]
    ours = sentencepiece.SentencePieceProcessor(model_proto=bpe.model_of([*RESERVED, *names]))
    for line in [*lines, "unseen Ж ☃", ""]:
        assert ours.encode(line, out_type=str) == theirs.encode(line, out_type=str)
        # And its ids are the lines of the file.
        ids = processor.encode(line)
        if 100 not in ids:
            assert [tokens[one] for one in ids] == processor.encode(line, out_type=str)


@given(st.text(st.sampled_from("abcdef áß猫犬แม \U0001f44d[]#▁"), max_size=30))
def test_no_text_gives_reserved_tokens_but_unk(processor, text):
    assert all(one >= 104 or one == 100 for one in processor.encode(text))


def test_a_size_too_small_for_the_characters_is_refused():
    with pytest.raises(ValueError, match="[Vv]ocab"):
        bpe.learn({"abcdefghij": 5}, 106, coverage=1.0)
