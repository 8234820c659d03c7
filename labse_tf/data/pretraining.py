"""Batches for pre-training: MLM over packed sentences, TLM over translation pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from labse_tf.config import PretrainConfig
from labse_tf.data import streams, texts
from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.data.masking import mask_for_pretraining
from labse_tf.data.record_counts import language_weights
from labse_tf.files.corpus_files import BITEXT, MONOLINGUAL, CorpusFile
from labse_tf.tokenization.protocol import Tokenizer

_RECORDS_PACKED_TOGETHER = 64
_SPECIALS = 2  # [CLS] and [SEP]
_SPECIALS_OF_PAIR = 3  # [CLS], and [SEP] behind each side
_SHUFFLED_SEQUENCES = 4096


def pretraining_batches(
    settings: PretrainConfig,
    tokenizer: Tokenizer,
    *,
    languages: Sequence[str],
    seed: int,
    stage: int,
    step: int = 0,
    part: streams.Part = streams.WHOLE,
) -> tf.data.Dataset:
    """Returns an endless dataset of masked global batches, in a fixed order.

    `pretrain.tlm_fraction` of the batches are TLM, the others MLM.

    Args:
      settings: the corpora, and how they are sampled, cut and masked.
      tokenizer: the tokeniser of the run's vocabulary.
      languages: codes; other languages are left out. An empty list means all.
      seed: the run's seed.
      stage: counted from 0; each stage has its own order.
      step: number of batches before, which a resumed run has seen.
      part: what to make of each batch.

    Returns:
      A dataset of MASKED_FEATURES, `[batch_size, sequence_length]`, and `file` (int32
      `[batch_size]`): index of the file in which each sequence begins, see `source_files`. With
      `pack_pairs`, also `input_positions`, see `BertEncoder`.
    """
    place = streams.position(step, streams.seed_of_stage(seed, stage), part)
    settings = dataclasses.replace(settings, batch_size=settings.batch_size // part.of)
    mlm_files, tlm_files = (_find(settings, task, languages) for task in ("mlm", "tlm"))
    tasks, shares = [], []
    if settings.tlm_fraction < 1.0:
        tasks.append(_mlm_sequences(settings, tokenizer, mlm_files, place))
        shares.append(1.0 - settings.tlm_fraction)
    if settings.tlm_fraction > 0.0:
        before = len(mlm_files)
        tasks.append(_tlm_sequences(settings, tokenizer, tlm_files, place, files_before=before))
        shares.append(settings.tlm_fraction)
    batches = tasks[0]
    if len(tasks) == 2:
        batches = tf.data.Dataset.sample_from_datasets(tasks, shares, seed=place.shared_seed)

    def mask(index, inputs):
        draws = tf.stack([tf.constant(place.seed, tf.int64), index])
        return mask_for_pretraining(inputs, settings, tokenizer, seed=draws)

    batches = batches.enumerate().skip(place.skip)
    return batches.map(mask, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def source_files(settings: PretrainConfig, languages: Sequence[str]) -> list[CorpusFile]:
    """Returns the files that `file` of a batch indexes: first for MLM, then for TLM."""
    return [file for task in ("mlm", "tlm") for file in _find(settings, task, languages)]


def _find(settings: PretrainConfig, task: str, languages: Sequence[str]) -> list[CorpusFile]:
    if task == "mlm":
        share, inputs, kind = 1.0 - settings.tlm_fraction, settings.monolingual, MONOLINGUAL
    else:
        share, inputs, kind = settings.tlm_fraction, settings.bitext, BITEXT
    if not share:
        return []
    return sorted(texts.find_files(inputs, kind, languages, key=f"pretrain.{kind}"))


def _mlm_sequences(
    settings: PretrainConfig,
    tokenizer: Tokenizer,
    files: list[CorpusFile],
    place: streams.Position,
) -> tf.data.Dataset:
    """Sentences of one language, concatenated and cut into full sequences `[CLS] ... [SEP]`."""

    def pack(index, records):
        serialized, file = records
        (strings,) = texts.parse(MONOLINGUAL, serialized)
        cut = _cut(settings, tokenizer, tokenizer(strings), file)
        if settings.pack_pairs:
            # Batches of both tasks have the same features.
            cut["input_positions"] = _positions(cut["input_word_ids"])
        return cut

    weights = language_weights(files, settings.language_exponent)
    drawn = {}
    if place.start:
        body = settings.sequence_length - _SPECIALS
        tokens = place.start * (1.0 - settings.tlm_fraction) * settings.batch_size * body
        drawn = streams.drawn_of(weights, tokens / _tokens_per_record(files, tokenizer, weights))
    options = {"seed": place.seed, "drawn": drawn, "part": place.part, "number_files": True}
    blocks = {
        language: stream.batch(_records_packed_together(settings))
        for language, stream in streams.language_streams(files, **options).items()
    }
    mixed = streams.mix(blocks, weights, seed=place.seed)
    sequences = mixed.enumerate().map(pack, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
    # Consecutive sequences of a block have the same language: shuffle them.
    sequences = sequences.shuffle(_SHUFFLED_SEQUENCES, seed=place.seed)
    return sequences.batch(settings.batch_size, drop_remainder=True)


def _tlm_sequences(
    settings: PretrainConfig,
    tokenizer: Tokenizer,
    files: list[CorpusFile],
    place: streams.Position,
    *,
    files_before: int,
) -> tf.data.Dataset:
    """Pairs as `[CLS] a [SEP] b [SEP]`, sides in random order, without a language hint.

    With `pack_pairs`, a sequence has as many of these as fit; see `_join`.
    """
    # In another order than MLM.
    order = place._replace(shared_seed=place.shared_seed + 1)

    def pack(index, records):
        serialized, file = records
        draws = tf.stack([tf.constant(place.seed, tf.int64), index])
        sides = texts.swap_half(*texts.parse(BITEXT, serialized), draws)
        packed = tokenizer.pack([tokenizer(side) for side in sides], settings.sequence_length)
        return {**packed, "file": file + files_before}

    def pack_full(index, records):
        return _join(pack(index, records), tokenizer.special_tokens["padding_id"])

    weights = language_weights(files, settings.language_exponent)
    start = place.start * settings.tlm_fraction * settings.batch_size
    if settings.pack_pairs and start:
        start *= settings.sequence_length / (
            _tokens_per_record(files, tokenizer, weights) + _SPECIALS_OF_PAIR
        )
    drawn = streams.drawn_of(weights, start)
    options = {"seed": order.seed, "drawn": drawn, "part": order.part, "number_files": True}
    pairs = streams.mix(streams.language_streams(files, **options), weights, seed=order.seed)
    if settings.pack_pairs:
        blocks = pairs.batch(_records_packed_together(settings)).enumerate()
        sequences = blocks.map(pack_full, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
        return sequences.batch(settings.batch_size, drop_remainder=True)
    batches = pairs.batch(settings.batch_size, drop_remainder=True)
    return batches.enumerate().map(pack, num_parallel_calls=tf.data.AUTOTUNE)


def _cut(
    settings: PretrainConfig, tokenizer: Tokenizer, tokens: tf.RaggedTensor, file: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Concatenates the tokens of `[records]` and cuts them into full sequences.

    Args:
      settings: `sequence_length`.
      tokenizer: the tokeniser of the run's vocabulary.
      tokens: `[records, (tokens)]`.
      file: `[records]`, the index of each one's file.

    Returns:
      ENCODER_INPUTS, `[sequences, sequence_length]`, and `file`, `[sequences]`, in which each one
      begins.
    """
    body = settings.sequence_length - _SPECIALS
    file_of_token = tf.repeat(file, tokens.row_lengths())
    # The incomplete sequence at the end is dropped: less than one out of many.
    full = tf.size(file_of_token) // body * body
    sequences = tf.RaggedTensor.from_tensor(tf.reshape(tokens.flat_values[:full], [-1, body]))
    packed = tokenizer.pack([sequences], settings.sequence_length)
    return {**packed, "file": file_of_token[:full:body]}


def _join(sequences: dict[str, tf.Tensor], padding_id: int) -> dict[str, tf.Tensor]:
    """Puts sequences one after the other, into as many as have room for them.

    Each stays whole. One that does not fit begins the next row (next-fit); the last row is dropped.

    Args:
      sequences: ENCODER_INPUTS, `[sequences, length]`, and `file`.
      padding_id: of `input_word_ids`.

    Returns:
      The same for fewer, `[rows, length]`, where `file` is for the first in a row; and
      `input_positions`, which are 0 at the first token of each.
    """
    features = {name: sequences[name] for name in ENCODER_INPUTS}
    features["input_positions"] = _positions(sequences["input_mask"])
    length = sequences["input_mask"].shape[1]

    def place(last, tokens):
        row, used = last
        fits = used + tokens <= length
        return tf.where(fits, row, row + 1), tf.where(fits, used + tokens, tokens)

    row, _ = tf.scan(place, tf.reduce_sum(sequences["input_mask"], axis=1), (0, 0))
    rows = row[-1]
    kept = (sequences["input_mask"] > 0) & (row < rows)[:, tf.newaxis]
    row_of_token = tf.boolean_mask(tf.broadcast_to(row[:, tf.newaxis], tf.shape(kept)), kept)
    joined = {}
    for name, values in features.items():
        tokens = tf.boolean_mask(values, kept)
        ragged = tf.RaggedTensor.from_value_rowids(tokens, row_of_token, rows)
        default = padding_id if name == "input_word_ids" else 0
        joined[name] = ragged.to_tensor(default, shape=[None, length])
    first = tf.searchsorted(row, tf.range(rows))
    return {**joined, "file": tf.gather(sequences["file"], first)}


def _records_packed_together(settings: PretrainConfig) -> int:
    return max(_RECORDS_PACKED_TOGETHER, settings.sequence_length)


def _positions(like: tf.Tensor) -> tf.Tensor:
    """Returns 0, 1, ... in each row, int32 with the shape of `like`."""
    return tf.broadcast_to(tf.range(tf.shape(like)[1]), tf.shape(like))


def _tokens_per_record(
    files: list[CorpusFile], tokenizer: Tokenizer, weights: Mapping[str, float]
) -> float:
    """Returns the mean over the first records of each language, by weight."""
    found = streams.measure_tokens(files, tokenizer)
    shares = [weights[language] for language in found]
    totals = [tokens.sum(axis=1).mean() for tokens in found.values()]
    return float(np.average(totals, weights=shares))
