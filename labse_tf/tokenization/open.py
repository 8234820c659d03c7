"""Opens a vocabulary file, whichever kind of pieces it has."""

from __future__ import annotations

import os

from labse_tf.tokenization.bpe import BpeTokenizer
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import bpe, wordpiece_file


def open_tokenizer(vocab_file: str | os.PathLike[str], *, max_bytes_per_word: int) -> Tokenizer:
    """Returns the tokeniser of a vocabulary of WordPieces or of byte-pair encodings.

    Args:
      vocab_file: one token per line.
      max_bytes_per_word: of WordPieces: longer words are [UNK].

    Raises:
      VocabularyFileError: if the file is missing or broken.
    """
    tokens = wordpiece_file.read(vocab_file)
    if bpe.is_bpe(tokens):
        return BpeTokenizer(tokens)
    return WordPieceTokenizer(vocab_file, max_bytes_per_word=max_bytes_per_word, tokens=tokens)
