"""The tokeniser of LASER2: punctuation by Moses' rules, lower case, SentencePiece, LASER's ids.

The order and the rules are those of laser_encoders/laser_tokenizer.py in facebookresearch/LASER,
which calls the English rules of Moses' normalize-punctuation.perl (with its `-penn`, as sacremoses
has them) for all languages. Two things differ, as they must be one TensorFlow graph: characters
that Unicode has not assigned stay, and letters are lower-cased one by one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf
import tensorflow_text as text

from labse_tf.errors import InputError
from labse_tf.systems.laser.moses import BRACKETS, NO_BREAK, QUOTES_AND_DASHES
from labse_tf.tokenization.bpe import SentencePieceLayer

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


def normalize(strings: tf.Tensor) -> tf.Tensor:
    """Returns `[batch]` strings with Moses' punctuation, in lower case."""
    for pattern, replacement in _RULES:
        strings = tf.strings.regex_replace(strings, pattern, replacement)
    return tf.strings.lower(strings, encoding="utf-8")


class LaserTokenizer:
    """What an export needs of a `Tokenizer`: there is no mask, and nothing before the first one."""

    def __init__(self, model_file: str | os.PathLike[str], dictionary: Mapping[str, int]) -> None:
        """Reads the model.

        Args:
          model_file: of SentencePiece, such as laser2.spm.
          dictionary: LASER's ids by piece, from the file of the weights.

        Raises:
          InputError: if it is no model of SentencePiece, or one of another dictionary.
        """
        import sentencepiece

        try:
            model = Path(model_file).read_bytes()
            pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"is no model of SentencePiece ({error})",
                path=model_file,
                remedy="name laser2.spm",
            ) from error
        known = {**dictionary, **SPECIAL_TOKENS}
        names = [pieces.id_to_piece(number) for number in range(pieces.get_piece_size())]
        ids = [known.get(name, UNKNOWN) for name in names]
        unknown = sum(number == UNKNOWN for number in ids)
        if unknown > len(ids) / 2:
            raise InputError(
                f"the dictionary of the weights lacks {unknown} of its {len(ids)} pieces",
                path=model_file,
                remedy="use the .spm and the .pt of one model",
            )
        self.tokens = tokens_of(dictionary)
        self.special_tokens = {
            "vocab_size": len(self.tokens),
            "padding_id": PADDING,
            "end_of_segment_id": END,
        }
        self.layer = SentencePieceLayer(model, normalize=normalize, ids=ids)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""
        return self.layer(strings).merge_dims(1, 2)

    def pack(
        self, segments: list[tf.RaggedTensor], length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments: see `pack_segments`."""
        return pack_segments(segments, length)


def pack_segments(segments: list[tf.RaggedTensor], length: int | tf.Tensor) -> dict[str, tf.Tensor]:
    """Packs one or two segments as `a </s> b </s>`, else as `Tokenizer.pack`."""
    segments = text.RoundRobinTrimmer(length - len(segments)).trim(segments)
    ends = tf.fill([segments[0].nrows(), 1], END)
    ended = [tf.concat([one, ends], axis=1) for one in segments]
    types = [tf.fill(tf.shape(one.flat_values), number) for number, one in enumerate(ended)]
    types = [one.with_flat_values(kind) for one, kind in zip(ended, types, strict=True)]
    ids, types = tf.concat(ended, axis=1), tf.concat(types, axis=1)
    shape = tf.stack([ids.nrows(), tf.cast(length, ids.row_splits.dtype)])
    return {
        "input_word_ids": _shaped(ids.to_tensor(PADDING, shape=shape), length),
        "input_mask": _shaped(tf.ones_like(ids).to_tensor(0, shape=shape), length),
        "input_type_ids": _shaped(types.to_tensor(0, shape=shape), length),
    }


def _shaped(tensor: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tensor, [None, None if tf.is_tensor(length) else length])


def tokens_of(dictionary: Mapping[str, int]) -> list[str]:
    """Returns the tokens by id, with LASER's special ones; the others get a name no text has."""
    dictionary = {**dictionary, **SPECIAL_TOKENS}
    tokens = [f"<{number}>" for number in range(max(dictionary.values()) + 1)]
    for token, number in dictionary.items():
        tokens[number] = token
    return tokens
