"""Batches for LASER: sources, targets, and the language of each target, by tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from labse_tf.data import streams, texts
from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.data.record_counts import count_records
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, CorpusFile
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.tokenization.protocol import Tokenizer

_ENGLISH = "en"
# Tokenised at a time: one call for each text would take longer than its tokens.
_PAIRS_PER_CALL = 1024

LASER_FEATURES: Features = {
    **ENCODER_INPUTS,
    "targets": tf.TensorSpec([None, None], tf.int32),
    "target_language": tf.TensorSpec([None], tf.int32),
}


class Direction(NamedTuple):
    """Bitext files; the target is the second side of each pair if `target_second`, or the first."""

    source: str
    target: str
    target_second: bool
    files: tuple[CorpusFile, ...]

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


def find_directions(
    bitext: Sequence[str],
    target_bitext: Sequence[str],
    targets: Sequence[str],
    languages: Sequence[str],
    *,
    key: str,
) -> list[Direction]:
    """Returns the directions of these corpora, sorted; see `LaserConfig`.

    Without `languages`, all are read. `key` is the name of `bitext` in the configuration, for the
    InputError if there are no pairs.
    """
    found: dict[tuple[str, str, bool], list[CorpusFile]] = {}
    for file in texts.find_files(bitext, BITEXT, languages, key=key) if bitext else ():
        if _ENGLISH in targets:
            found.setdefault((file.language, _ENGLISH, False), []).append(file)
        if file.language in targets:
            found.setdefault((_ENGLISH, file.language, True), []).append(file)
    options = {"key": key.replace(".", ".target_"), "with_english": False}
    for entry in target_bitext:
        target, _, path = entry.partition("=")
        for file in texts.find_files([path], BITEXT, languages, **options):
            if file.language != target:
                found.setdefault((file.language, target, False), []).append(file)
    if not found:
        raise InputError(
            f"no pair of '{key}' has a target in {', '.join(targets)}",
            remedy=f"add --set {key}=[DIR], or name other 'laser.targets'",
        )
    return [Direction(*kind, tuple(sorted(files))) for kind, files in sorted(found.items())]


def check_sources(directions: Sequence[Direction], targets: Sequence[str]) -> None:
    """Raises InputError if a target language is never a source: nothing would train it."""
    for target in targets:
        if target not in {one.source for one in directions}:
            raise InputError(
                f"no pair translates {target}, so its sentences would get no vectors",
                remedy="add such pairs to 'laser.bitext', or leave it out of 'laser.targets'",
            )


def laser_batches(
    settings: LaserConfig,
    tokenizer: Tokenizer,
    directions: Sequence[Direction],
    *,
    seed: int,
    replicas: int = 1,
    step: int = 0,
) -> tf.data.Dataset:
    """Returns an endless dataset of global batches of LASER_FEATURES, in an order set by `seed`.

    Pairs of all directions are mixed. (LASER's code has one direction a batch, in which a small
    language would have the same few sentences many times.) A batch is padded to one of
    `bucket_lengths`, and has as many rows as `batch_tokens` hold, a multiple of `replicas`: if
    they hold no row of the longest texts for each, InputError is raised. The first `step` batches,
    which a resumed run has seen, are left out.
    """
    lengths = settings.bucket_lengths
    rows = [settings.batch_tokens // length // replicas * replicas for length in lengths]
    if not rows[-1]:
        raise InputError(
            f"'laser.batch_tokens' of {settings.batch_tokens} do not hold a text of {lengths[-1]} "
            f"tokens for each of {replicas} replicas",
            remedy=f"set it to {replicas * lengths[-1]} or more",
        )
    second = tf.constant([one.target_second for one in directions])
    targets = tf.constant([settings.targets.index(one.target) for one in directions])

    def encode(number, serialized):
        first_side, second_side = texts.parse(BITEXT, serialized)
        is_second = tf.gather(second, number)
        source = tf.where(is_second, first_side, second_side)
        target = tf.where(is_second, second_side, first_side)
        sides = encode_pairs(tokenizer, source, target, longest=lengths[-1])
        padded = [(side.to_tensor(), side.row_lengths()) for side in sides]
        return *padded, tf.gather(targets, number)

    def cut(source, target, language):
        return *(ids[:length] for ids, length in (source, target)), language

    def length_of(source, target, language):
        return tf.maximum(tf.size(source), tf.size(target))

    place = streams.position(step, seed)
    count_records(sorted({file for one in directions for file in one.files}))  # All in one pass.
    counts = [sum(count_records(one.files).values()) for one in directions]
    # Without pairs there is no share, even with exponent 0.
    shares = np.array([count**settings.language_exponent if count else 0.0 for count in counts])
    if not shares.sum():
        raise texts.no_records()
    shares /= shares.sum()
    before = float(place.start)
    if before:
        before *= _pairs_per_batch(tokenizer, directions, shares, lengths, rows)
    parts = []
    for number, (one, share) in enumerate(zip(directions, shares, strict=True)):
        drawn = {one.files[0].language: round(share * before)}
        by_language = streams.language_streams(one.files, seed=place.seed + number, drawn=drawn)
        numbers = tf.data.Dataset.from_tensors(number).repeat()
        parts.append(tf.data.Dataset.zip((numbers, *by_language.values())))
    records = tf.data.Dataset.sample_from_datasets(parts, weights=list(shares), seed=place.seed)
    records = records.batch(_PAIRS_PER_CALL)
    pairs = records.map(encode, num_parallel_calls=tf.data.AUTOTUNE).unbatch().map(cut)
    batches = pairs.bucket_by_sequence_length(
        length_of,
        bucket_boundaries=[length + 1 for length in lengths],
        bucket_batch_sizes=[*rows, rows[-1]],  # No text is longer than the last one.
        pad_to_bucket_boundary=True,
    )
    batches = batches.skip(place.skip).map(features_of, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(4)


def _pairs_per_batch(
    tokenizer: Tokenizer,
    directions: Sequence[Direction],
    shares: np.ndarray,
    lengths: Sequence[int],
    rows: Sequence[int],
) -> float:
    """Estimates the mean from the first pairs of each direction.

    Batches of bucket b come as often as its share of the pairs divided by its rows.
    """
    batches = 0.0
    for one, share in zip(directions, shares, strict=True):
        for tokens in streams.measure_tokens(one.files, tokenizer).values():
            bucket = np.searchsorted(lengths, tokens.max(axis=1) + 2).clip(max=len(lengths) - 1)
            batches += share * np.mean(1.0 / np.array(rows)[bucket])
    return 1.0 / batches


def encode_pairs(
    tokenizer: Tokenizer, source: tf.Tensor, target: tf.Tensor, *, longest: int
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the ids of `[CLS] source [SEP]` and of `target [SEP]`, int32 ragged.

    Both are `[batch]` strings, cut to `longest` tokens, special ones included.
    """
    special = tokenizer.special_tokens
    source, target = tokenizer(source)[:, : longest - 2], tokenizer(target)[:, : longest - 1]
    start = tf.fill([source.nrows(), 1], special["start_of_sequence_id"])
    end = tf.fill([source.nrows(), 1], special["end_of_segment_id"])
    return tf.concat([start, source, end], axis=1), tf.concat([target, end], axis=1)


def features_of(source: tf.Tensor, target: tf.Tensor, language: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns LASER_FEATURES of padded ids, `[batch, length]`, and `[batch]` target languages."""
    return {
        "input_word_ids": source,
        "input_mask": tf.cast(source != 0, tf.int32),
        "input_type_ids": tf.zeros_like(source),
        "targets": target,
        "target_language": language,
    }
