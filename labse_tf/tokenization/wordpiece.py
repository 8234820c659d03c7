"""The WordPiece tokeniser, for training data and exported models.

Cased BERT tokenisation by TF Text: no lower-casing, no accent stripping, no Unicode normalisation;
control and format characters become spaces; words are split at ASCII white space, at punctuation
and around Chinese characters, then into WordPieces. If no piece of the vocabulary contains another
Unicode space (no-break, ideographic), words are split at these too: TF Text treats them as letters
and would make such a word [UNK]. A word that the pieces cannot spell, or that is longer than a
limit in bytes, is one [UNK].
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import tensorflow as tf
import tensorflow_text as text
from official.nlp.modeling import layers

from labse_tf.tokenization.detokenize import join_wordpieces
from labse_tf.tokenization.packing import pack_segments
from vocab import wordpiece_file
from vocab.basic_tokenizer import UNICODE_SPACE, UNLIKE_TF
from vocab.wordpiece import divides_at_spaces

_MOST_BYTES_PER_CHARACTER = 4
_PRIVATE = "\U0010fffd"  # For private use: a letter to both of TF Text's tokenisers.
_NEWER_PUNCTUATION = f"[{UNLIKE_TF}]"
# To the fast tokeniser these are not letters, or they stand for such characters.
_UNLIKE = re.compile(f"[{UNLIKE_TF}{_PRIVATE}]")


class SpaceDividingTokenizer(layers.BertTokenizer):
    """TF Text's tokeniser, with every Unicode space replaced by an ASCII one."""

    def call(self, inputs: tf.Tensor) -> tf.RaggedTensor:
        return super().call(tf.strings.regex_replace(inputs, UNICODE_SPACE, " "))


class WordPieceTokenizer:
    """A `Tokenizer` based on the Model Garden's BertTokenizer layer."""

    def __init__(
        self,
        vocab_file: str | os.PathLike[str],
        *,
        max_bytes_per_word: int,
        tokens: list[str] | None = None,
    ) -> None:
        """Reads the vocabulary.

        Args:
          vocab_file: one token per line.
          max_bytes_per_word: longer words are [UNK]. TF Text's default of 100 bytes would turn 34
            characters of unspaced Thai into [UNK].
          tokens: what `wordpiece_file.read` returned for the file, if it was called; None: read it.

        Raises:
          VocabularyFileError: if the file is missing or broken.
        """
        self.tokens = wordpiece_file.read(vocab_file) if tokens is None else tokens
        divides = divides_at_spaces(self.tokens)
        self.layer = (SpaceDividingTokenizer if divides else layers.BertTokenizer)(
            vocab_file=os.fspath(vocab_file),
            lower_case=False,
            tokenizer_kwargs={"max_bytes_per_word": max_bytes_per_word},
        )
        self.special_tokens = self.layer.get_special_tokens_dict()
        self._fast = _fast_tokenizer(self.tokens, max_bytes_per_word) if divides else None
        # One graph each, traced once and shared by all parts of an input pipeline.
        strings = tf.TensorSpec([None], tf.string)
        self._tokenize = tf.function(self._call_layer, input_signature=[strings], autograph=False)
        self._pack = tf.function(self._pack_segments, autograph=False)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""
        return (self._tokenize if tf.inside_function() else self._call_layer)(strings)

    def _call_layer(self, strings: tf.Tensor) -> tf.RaggedTensor:
        if self._fast is None:
            return self.layer(strings).merge_dims(1, 2)
        strings = tf.strings.regex_replace(strings, UNICODE_SPACE, " ")
        # No piece has any of these: a word with one is [UNK].
        strings = tf.strings.regex_replace(strings, _NEWER_PUNCTUATION, _PRIVATE)
        return self._fast.tokenize(strings)

    def pack(
        self, segments: list[tf.RaggedTensor], length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments as `[CLS] a [SEP] b [SEP]`, truncated round-robin and padded.

        Args:
          segments: int32 ragged `[batch, (tokens)]` each.
          length: length of the result, tokens.

        Returns:
          `input_word_ids`, `input_mask`, `input_type_ids`: int32 `[batch, length]` each.
        """
        return (self._pack if tf.inside_function() else self._pack_segments)(segments, length)

    def _pack_segments(self, segments, length):
        return pack_segments(segments, length, self.special_tokens)

    def join(self, tokens: Iterable[str]) -> str:
        """Returns the text of a sequence of tokens, without special tokens."""
        return join_wordpieces(tokens)


def _fast_tokenizer(tokens: list[str], max_bytes_per_word: int) -> text.FastBertTokenizer | None:
    """Returns TF Text's faster tokeniser (Song et al. 2021, "Fast WordPiece Tokenization").

    It takes a fifth of the time of `SpaceDividingTokenizer`, and differs from it in two things: it
    has newer tables of Unicode, to which more characters are punctuation, and it reads one too many
    [UNK] beside punctuation that is longer than `max_bytes_per_word`. Returns None if that matters
    to the vocabulary or the limit, or TF Text refuses it for pieces that no text has, such as a
    control character.
    """
    if any(map(_UNLIKE.search, tokens)) or max_bytes_per_word < _MOST_BYTES_PER_CHARACTER:
        return None
    try:
        return text.FastBertTokenizer(
            tokens, token_out_type=tf.int32, max_bytes_per_word=max_bytes_per_word
        )
    except RuntimeError:
        return None
