"""The tokeniser of byte-pair encodings: SentencePiece, by TF Text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from labse_tf.tokenization.packing import pack_segments
from labse_tf.tokenization.sentencepiece_layer import SentencePieceLayer
from vocab import bpe, wordpiece_file
from vocab.basic_tokenizer import UNICODE_SPACE


class BpeTokenizer:
    """A `Tokenizer` with the special tokens, and the packing, of WordPieces."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Makes the tokeniser.

        Args:
          tokens: of a vocabulary of `labse vocab bpe`; a token's index is its id.
        """
        self.tokens = list(tokens)
        ids = {token: number for number, token in enumerate(wordpiece_file.RESERVED_TOKENS)}
        self.special_tokens = {
            "vocab_size": len(self.tokens),
            "padding_id": ids["[PAD]"],
            "start_of_sequence_id": ids["[CLS]"],
            "end_of_segment_id": ids["[SEP]"],
            "mask_id": ids["[MASK]"],
        }
        self.layer = SentencePieceLayer(bpe.model_of(self.tokens), normalize=_with_plain_spaces)
        strings = tf.TensorSpec([None], tf.string)
        self._tokenize = tf.function(self._call_layer, input_signature=[strings], autograph=False)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""
        return self._tokenize(strings)

    def _call_layer(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self.layer(strings).merge_dims(1, 2)

    def pack(
        self, segments: list[tf.RaggedTensor], length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments: see `pack_segments`."""
        return pack_segments(segments, length, self.special_tokens)

    def join(self, tokens: Iterable[str]) -> str:
        """Returns the text of a sequence of tokens, without special tokens."""
        return "".join(tokens).replace(bpe.WORD_START, " ").strip(" ")


def _with_plain_spaces(strings: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(strings, UNICODE_SPACE, " ")
