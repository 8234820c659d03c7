"""LASER's tokenisers: LASER2's, which is a TensorFlow graph, and the 2018 encoder's, in Python.

LASER2: punctuation, lower case, SentencePiece, LASER's ids, as laser_encoders/laser_tokenizer.py in
facebookresearch/LASER does it, with the English rules of Moses' normalize-punctuation.perl (and its
`-penn`, as sacremoses has them) for all languages. Two things differ, as it must be one graph:
characters that Unicode has not assigned stay, and letters are lower-cased one by one.

The encoder of 2018: words by rules and programs that no graph can hold.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as text

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines
from labse_tf.systems.laser.words import BRACKETS, NO_BREAK, QUOTES_AND_DASHES, LaserWords
from labse_tf.tokenization.byte_pairs import SentencePieceLayer

START, PADDING, END, UNKNOWN = range(4)
SPECIAL_TOKENS = {"<s>": START, "<pad>": PADDING, "</s>": END, "<unk>": UNKNOWN}

# (pattern, replacement) in RE2's syntax, applied in this order.
_RULES = (
    (r"\p{C}", " "),
    *BRACKETS,
    (r"(\p{Nd}) %", r"\1%"),
    *QUOTES_AND_DASHES,
    (f"{NO_BREAK}(%|:|\\?|!|;)", r"\1"),
    (f"nº{NO_BREAK}", "nº "),
    (f"{NO_BREAK}(ºC|cm)", r" \1"),
    (f",{NO_BREAK}", ", "),
    (" +", " "),
    ('"([,.]+)', r'\1"'),
    (f"(\\p{{Nd}}){NO_BREAK}(\\p{{Nd}})", r"\1.\2"),
    (r"^\s+|\s+$", ""),
)

# In a model dir of the encoder of 2018.
CODES_FILE, VOCAB_FILE = Path("tokenizer", "bpe.codes"), Path("tokenizer", "bpe.vocab")
_TOKENS_FILE = Path("encoder", "assets", "vocab.txt")
_END_OF_WORD, CONTINUED = "</w>", "@@"
_WORDS_KEPT = 1 << 18  # Words repeat: most of a text is looked up.


def normalize(strings: tf.Tensor) -> tf.Tensor:
    """Returns `[batch]` strings with Moses' punctuation, in lower case."""
    for pattern, replacement in _RULES:
        strings = tf.strings.regex_replace(strings, pattern, replacement)
    return tf.strings.lower(strings, encoding="utf-8")


def pack_segments(
    segments: list[tf.RaggedTensor], seq_length: int | tf.Tensor
) -> dict[str, tf.Tensor]:
    """Packs one or two segments as `a </s> b </s>`, else as `Tokenizer.pack`."""
    segments = text.RoundRobinTrimmer(seq_length - len(segments)).trim(segments)
    ends = tf.fill([segments[0].nrows(), 1], END)
    ended = [tf.concat([one, ends], axis=1) for one in segments]
    types = [tf.ones_like(one) * number for number, one in enumerate(ended)]
    ids, types = tf.concat(ended, axis=1), tf.concat(types, axis=1)
    shape = tf.stack([ids.nrows(), tf.cast(seq_length, ids.row_splits.dtype)])
    static = [None, None if tf.is_tensor(seq_length) else seq_length]
    packed = {
        "input_word_ids": ids.to_tensor(PADDING, shape=shape),
        "input_mask": tf.ones_like(ids).to_tensor(0, shape=shape),
        "input_type_ids": types.to_tensor(0, shape=shape),
    }
    return {name: tf.ensure_shape(one, static) for name, one in packed.items()}


class LaserTokenizer:
    """The part of a `Tokenizer` that an export needs, without [MASK] and a token at the start."""

    def __init__(self, model_file: str | os.PathLike[str], dictionary: Mapping[str, int]) -> None:
        """Reads a model of SentencePiece, such as laser2.spm; takes ids by piece, of the weights.

        Raises InputError if it is no model of SentencePiece, or has another dictionary.
        """
        import sentencepiece

        try:
            model = Path(model_file).read_bytes()
            pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (OSError, RuntimeError) as error:
            problem = f"is no model of SentencePiece ({error})"
            raise InputError(problem, path=model_file, remedy="name laser2.spm") from error
        known = {**dictionary, **SPECIAL_TOKENS}
        names = [pieces.id_to_piece(number) for number in range(pieces.get_piece_size())]
        ids = [known.get(name, UNKNOWN) for name in names]
        check_dictionary(names, known, model_file)
        self.tokens = tokens_of(dictionary)
        self.special_tokens = {"padding_id": PADDING, "end_of_segment_id": END}
        self.special_tokens["vocab_size"] = len(self.tokens)
        self.layer = SentencePieceLayer(model, normalize=normalize, ids=ids)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""
        return self.layer(strings).merge_dims(1, 2)

    pack = staticmethod(pack_segments)


def check_dictionary(
    names: Sequence[str], known: Mapping[str, int], path: str | os.PathLike[str]
) -> None:
    """Raises InputError if the dictionary of the weights lacks most of a file's pieces."""
    unknown = sum(known.get(name, UNKNOWN) == UNKNOWN for name in names)
    if unknown > len(names) / 2:
        problem = f"the dictionary of the weights lacks {unknown} of its {len(names)} pieces"
        raise InputError(problem, path=path, remedy="use the files of one model")


def tokens_of(dictionary: Mapping[str, int]) -> list[str]:
    """Returns the tokens by id, with LASER's special ones; the others get a name no text has."""
    dictionary = {**dictionary, **SPECIAL_TOKENS}
    tokens = [f"<{number}>" for number in range(max(dictionary.values()) + 1)]
    for token, number in dictionary.items():
        tokens[number] = token
    return tokens


class FastBpe:
    """Splits words by the merges of fastBPE, as `fast applybpe` does with its vocabulary.

    A word begins as its characters, the last with `</w>`. Of all pairs of neighbours the one that
    was learned first is joined, wherever it occurs, until none is known (Sennrich et al. 2016,
    arXiv 1508.07909, algorithm 1). A piece that `vocabulary` lacks is then split again into the two
    that it was joined from, down to characters. In text, a piece within a word ends in `@@`.
    """

    def __init__(
        self, codes_file: str | os.PathLike[str], vocab_file: str | os.PathLike[str]
    ) -> None:
        """Reads the files of `fast learnbpe` and `fast getvocab`; InputError if they are others."""
        pairs = [tuple(columns[:2]) for columns in _columns(codes_file, "left right count")]
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}
        self._parts = {left + right: (left, right) for left, right in reversed(pairs)}
        self.vocabulary = {columns[0] for columns in _columns(vocab_file, "piece count")}
        self.split = functools.lru_cache(_WORDS_KEPT)(self._split)

    def _split(self, word: str) -> tuple[str, ...]:
        """Returns the pieces of a word without white space, as in text."""
        if not word:
            return ()
        *first, last = self._merge([*word[:-1], word[-1] + _END_OF_WORD])
        pieces = [part for piece in first for part in self._known(piece, is_last=False)]
        return (*pieces, *self._known(last, is_last=True))

    def _merge(self, pieces: list[str]) -> list[str]:
        while pairs := self._ranks.keys() & set(zip(pieces, pieces[1:], strict=False)):
            best = min(pairs, key=self._ranks.__getitem__)
            place = 0
            while place < len(pieces) - 1:
                if (pieces[place], pieces[place + 1]) == best:
                    pieces[place : place + 2] = ["".join(best)]
                place += 1
        return pieces

    def _known(self, piece: str, *, is_last: bool) -> Iterator[str]:
        """Yields the piece, as in text, if it is known or a character, else its parts."""
        text_ = piece.removesuffix(_END_OF_WORD) if is_last else piece + CONTINUED
        if piece not in self._parts or text_ in self.vocabulary:
            yield text_
            return
        left, right = self._parts[piece]
        yield from self._known(left, is_last=False)
        yield from self._known(right, is_last=is_last)


def _columns(path: str | os.PathLike[str], names: str) -> Iterator[list[str]]:
    for number, line in read_lines(path):
        columns = line.split(" ")
        if len(columns) != len(names.split()) or not all(columns) or not columns[-1].isdecimal():
            problem = f"the line is not '{names}', as fastBPE writes it"
            remedy = "name the files that belong to the encoder, such as 93langs.fcodes"
            raise InputError(problem, path=path, line=number, remedy=remedy)
        yield columns


class Laser2018Preprocessor:
    """Strings to the inputs of the encoder of 2018, with the methods of a SavedModel's."""

    def __init__(self, model_dir: Path, *, length: int, language: str | None) -> None:
        """Reads the files of a model dir; InputError if one is missing or damaged.

        Takes the `length` of packed inputs, and a language of `LaserWords`.
        """
        self._bpe = FastBpe(model_dir / CODES_FILE, model_dir / VOCAB_FILE)
        tokens = (model_dir / _TOKENS_FILE).read_text("utf-8").split("\n")[:-1]
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._length, self._words = length, LaserWords(language)

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (1), (tokens)]`: a text counts as one word.

        Raises InputError if a package is missing that a text's language needs.
        """
        rows = []
        for one in strings.numpy():
            words = self._words(one.decode("utf-8", "replace"))
            pieces = (piece for word in words for piece in self._bpe.split(word))
            rows.append([self._ids.get(piece, UNKNOWN) for piece in pieces])
        flat = np.fromiter((number for row in rows for number in row), np.int32)
        tokens = tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])
        return tf.RaggedTensor.from_row_splits(tokens, tf.range(tokens.nrows() + 1), validate=False)

    bert_pack_inputs = staticmethod(pack_segments)

    def __call__(self, strings: tf.Tensor) -> dict[str, tf.Tensor]:
        """`[batch]` strings -> dict of int32 `[batch, length]`, as a SavedModel's."""
        return self.bert_pack_inputs([self.tokenize(strings).merge_dims(1, 2)], self._length)
