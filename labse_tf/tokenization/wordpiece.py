"""The WordPiece tokeniser, for training data and exported models alike.

Cased BERT tokenisation by TF Text: no lower-casing, no accent stripping, no Unicode normalisation;
control and format characters become spaces; words are split at ASCII white space, at punctuation
and around Chinese characters, then into WordPieces. With a vocabulary that has no piece with
another space of Unicode in it (no-break, ideographic), words are split at these too: TF Text, to
which they are letters, would find nothing but [UNK] for such a word. A word that the pieces cannot
spell, or that is longer than a limit in bytes, is one [UNK].
"""

from __future__ import annotations

import os

import tensorflow as tf
from official.nlp.modeling import layers

from vocab import wordpiece_file
from vocab.basic_tokenizer import UNICODE_SPACE
from vocab.wordpiece import divides_at_spaces


class SpaceDividingTokenizer(layers.BertTokenizer):
    """TF Text's tokeniser, to which every space of Unicode is an ASCII one."""

    def call(self, inputs: tf.Tensor) -> tf.RaggedTensor:
        return super().call(tf.strings.regex_replace(inputs, UNICODE_SPACE, " "))


class WordPieceTokenizer:
    """A `Tokenizer` by the Model Garden's BertTokenizer layer."""

    def __init__(self, vocab_file: str | os.PathLike[str], *, max_bytes_per_word: int) -> None:
        """Reads the vocabulary.

        Args:
          vocab_file: a token a line.
          max_bytes_per_word: longer words are [UNK]. TF Text's own default of 100 bytes would lose
            34 characters of unspaced Thai.

        Raises:
          VocabularyFileError: if the file is missing or broken.
        """
        self.tokens = wordpiece_file.read(vocab_file)
        divides = divides_at_spaces(self.tokens)
        self.layer = (SpaceDividingTokenizer if divides else layers.BertTokenizer)(
            vocab_file=os.fspath(vocab_file),
            lower_case=False,
            tokenizer_kwargs={"max_bytes_per_word": max_bytes_per_word},
        )
        self.special_tokens = self.layer.get_special_tokens_dict()
        # A graph each, traced once for all the places of an input pipeline that tokenise and pack.
        strings = tf.TensorSpec([None], tf.string)
        self._tokenize = tf.function(self._call_layer, input_signature=[strings], autograph=False)
        self._pack = tf.function(self._pack_segments, autograph=False)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""
        return (self._tokenize if tf.inside_function() else self._call_layer)(strings)

    def _call_layer(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self.layer(strings).merge_dims(1, 2)

    def pack(
        self, segments: list[tf.RaggedTensor], length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments as `[CLS] a [SEP] b [SEP]`, truncated round-robin and padded.

        Args:
          segments: int32 ragged `[batch, (tokens)]` each.
          length: of the result, tokens.

        Returns:
          `input_word_ids`, `input_mask`, `input_type_ids`: int32 `[batch, length]` each.
        """
        return (self._pack if tf.inside_function() else self._pack_segments)(segments, length)

    def _pack_segments(self, segments, length):
        special = self.special_tokens
        return layers.BertPackInputs.bert_pack_inputs(
            segments,
            length,
            start_of_sequence_id=special["start_of_sequence_id"],
            end_of_segment_id=special["end_of_segment_id"],
            padding_id=special["padding_id"],
        )
