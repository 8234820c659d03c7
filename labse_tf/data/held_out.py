"""Held-out examples for pre-training: MLM and TLM predict the same masked tokens.

In a translation pair, tokens of the foreign side are masked. MLM sees only that side, TLM also the
English side before it, so their difference shows how much the translation helps. Sentences without
a translation are used for MLM only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from labse_tf.config import PretrainConfig
from labse_tf.data import texts
from labse_tf.data.masking import mask_for_pretraining
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import MOSES, SHARD, TEXT, TSV, CorpusFile, find_corpus_files
from labse_tf.tokenization.protocol import Tokenizer

HELD_OUT_SEED = 29  # The same tokens are masked in every run, so that runs can be compared.
_BYTES_OF_LOGITS = 1 << 28

Batch = dict[str, "np.ndarray | Batch"]


class HeldOut(NamedTuple):
    """The sequences of one task.

    Attributes:
      languages: `[rows]`, a language code per row.
      rows: the dict that `mask_tokens` returns, `[rows, length]`.
    """

    languages: np.ndarray
    rows: Batch

    def batches(self, vocab_size: int) -> Iterator[Batch]:
        """Yields batches of equal size, small enough for the softmax; the last one is padded."""
        predictions = self.rows["masked_ids"].shape[1]
        size = max(1, min(256, _BYTES_OF_LOGITS // (4 * predictions * vocab_size)))

        def cut(rows: np.ndarray, start: int) -> np.ndarray:
            missing = max(0, start + size - len(rows))
            return np.pad(rows[start : start + size], ((0, missing), (0, 0)))

        for start in range(0, len(self.languages), size):
            yield tf.nest.map_structure(functools.partial(cut, start=start), self.rows)


def concatenate(parts: Sequence[tuple[str, Batch]]) -> HeldOut:
    """Returns the examples of all parts, each the rows of one language."""
    languages = [language for language, rows in parts for _ in rows["masked_ids"]]
    rows = tf.nest.map_structure(lambda *rows: np.concatenate(rows), *(rows for _, rows in parts))
    return HeldOut(np.array(languages), rows)


def read_held_out(
    settings: PretrainConfig, tokenizer: Tokenizer, languages: Sequence[str]
) -> dict[str, HeldOut]:
    """Returns the examples of each task, `mlm` and `tlm`, of `pretrain.held_out`.

    These are the first `pretrain.held_out_size` of each language and kind that fit the sequence
    length.

    Raises:
      InputError: if there are none.
    """
    found: dict[str, list[tuple[str, Batch]]] = {"mlm": [], "tlm": []}
    for language, kind, records in _read(settings, languages):
        sides = [tokenizer(side) for side in texts.parse(kind, records)]
        with_special_tokens = 1 + sum(side.row_lengths() + 1 for side in sides)
        fits = with_special_tokens <= settings.sequence_length
        fits &= sides[-1].row_lengths() > 0
        sides = [tf.ragged.boolean_mask(side, fits) for side in sides]
        sides = [side[: settings.held_out_size] for side in sides]
        if sides[-1].nrows():
            for task, rows in _make(settings, tokenizer, *sides).items():
                found[task].append((language, rows))
    if not found["mlm"]:
        raise InputError(
            "'pretrain.held_out' has no sentence that fits 'pretrain.sequence_length'",
            remedy="name a corpus with sentences, or leave it empty",
        )
    return {task: _without_padding(concatenate(parts)) for task, parts in found.items() if parts}


def _read(
    settings: PretrainConfig, languages: Sequence[str]
) -> Iterator[tuple[str, str, tf.Tensor]]:
    """Yields language, kind and records: more than needed, as some will be too long."""
    # Loose TFRECORD files are left out: their kind is not known.
    files = find_corpus_files(settings.held_out, formats=(TEXT, TSV, SHARD, MOSES))
    for (language, kind), group in groupby(sorted(files, key=_group), key=_group):
        if not languages or language in languages:
            records = texts.concatenate([texts.records(file) for file in sorted(group)])
            with texts.input_errors():
                for some in records.batch(4 * settings.held_out_size).take(1):
                    yield language, kind, some


def _group(file: CorpusFile) -> tuple[str, str]:
    return file.language, file.kind


def _make(
    settings: PretrainConfig, tokenizer: Tokenizer, *sides: tf.RaggedTensor
) -> dict[str, Batch]:
    *context, sentences = sides
    packed = tokenizer.pack([sentences], settings.sequence_length)
    seed = tf.constant([HELD_OUT_SEED, 0])
    alone = mask_for_pretraining(packed, settings, tokenizer, seed=seed)
    # Unused predictions point at [CLS].
    alone["masked_positions"] *= tf.cast(alone["masked_weights"], tf.int32)
    made = {"mlm": alone}
    if context:
        lengths = sentences.row_lengths()
        hidden = tf.RaggedTensor.from_tensor(alone["input_word_ids"][:, 1:-1], lengths=lengths)
        packed = tokenizer.pack([*context, hidden], settings.sequence_length)
        before = tf.cast(context[0].row_lengths() + 1, tf.int32)[:, tf.newaxis]
        moved = alone["masked_positions"] + before * tf.cast(alone["masked_weights"], tf.int32)
        made["tlm"] = {**alone, **packed, "masked_positions": moved}
    return {
        task: {name: value.numpy() for name, value in rows.items()} for task, rows in made.items()
    }


def _without_padding(examples: HeldOut) -> HeldOut:
    """Drops columns that are empty in all rows, so that nothing is computed for them."""
    length = int(examples.rows["input_mask"].sum(axis=1).max())
    predictions = int(examples.rows["masked_weights"].sum(axis=1).max())
    cut = {
        name: values[:, : predictions if name.startswith("masked") else length]
        for name, values in examples.rows.items()
    }
    return examples._replace(rows=cut)
