"""Batches for CMLM (Yang et al. 2021): sentences with masked tokens, and their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import tensorflow as tf

from labse_tf.config import PretrainConfig
from labse_tf.data import streams, texts
from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.data.held_out import HELD_OUT_SEED, HeldOut, concatenate
from labse_tf.data.masking import MASKED_FEATURES, mask_for_pretraining
from labse_tf.data.record_counts import language_weights
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.record_kinds import NEIGHBOURS
from labse_tf.tokenization.protocol import Tokenizer

NEIGHBOUR_FEATURES: Features = {**MASKED_FEATURES, "neighbour": ENCODER_INPUTS}


def neighbour_batches(
    settings: PretrainConfig,
    tokenizer: Tokenizer,
    *,
    languages: Sequence[str],
    seed: int,
    stage: int,
    step: int = 0,
    part: streams.Part = streams.WHOLE,
) -> tf.data.Dataset:
    """Returns an endless dataset of global batches, in a fixed order.

    Of two adjacent sentences, one is masked and the other is `neighbour`; which one, is drawn.

    Args:
      settings: the corpora, and how they are sampled, cut and masked.
      tokenizer: the tokeniser of the run's vocabulary.
      languages: codes; other languages are left out. An empty list means all.
      seed: the run's seed.
      stage: counted from 0; each stage has its own order.
      step: number of batches before, which a resumed run has seen.
      part: what to make of each batch.

    Returns:
      A dataset of NEIGHBOUR_FEATURES, `[batch_size, sequence_length]`, and `file` (int32
      `[batch_size]`): index of the file of each pair, see `neighbour_files`.
    """
    place = streams.position(step, streams.seed_of_stage(seed, stage), part)
    rows = settings.batch_size // part.of
    files = neighbour_files(settings, languages)

    def prepare(index, records):
        serialized, file = records
        draws = tf.stack([tf.constant(place.seed, tf.int64), index])
        sides = texts.swap_half(*texts.parse(NEIGHBOURS, serialized), draws)
        return {**_pack(settings, tokenizer, sides, seed=draws), "file": file}

    weights = language_weights(files, settings.language_exponent)
    by_language = streams.language_streams(
        files,
        seed=place.seed,
        drawn=streams.drawn_of(weights, place.start * rows),
        part=part,
        number_files=True,
    )
    pairs = streams.mix(by_language, weights, seed=place.seed)
    batches = pairs.batch(rows, drop_remainder=True)
    batches = batches.enumerate().skip(place.skip)
    return batches.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def neighbour_files(settings: PretrainConfig, languages: Sequence[str]) -> list[CorpusFile]:
    """Returns the files that `file` of a batch indexes."""
    key = "pretrain.neighbours"
    return sorted(texts.find_files(settings.neighbours, NEIGHBOURS, languages, key=key))


def read_held_out_neighbours(
    settings: PretrainConfig, tokenizer: Tokenizer, languages: Sequence[str]
) -> dict[str, HeldOut]:
    """Returns examples of `pretrain.held_out`, with two neighbours of each masked sentence.

    In `cmlm` they are its own; in `cmlm_shuffled` the same masked sentences have the neighbour of
    another sentence in their language. An encoder whose vectors say something about the next
    sentence has a lower loss on the former.

    Raises:
      InputError: if a language has fewer than 2 pairs, or there are none.
    """
    true, shuffled = [], []
    key = "pretrain.held_out"
    files = sorted(texts.find_files(settings.held_out, NEIGHBOURS, languages, key=key))
    for language, group in groupby(files, key=lambda file: file.language):
        stream = texts.concatenate([texts.records(file) for file in group])
        with texts.input_errors():
            records = next(iter(stream.batch(settings.held_out_size)))
        rows = _pack(
            settings,
            tokenizer,
            texts.parse(NEIGHBOURS, records),
            seed=tf.constant([HELD_OUT_SEED, 0]),
        )
        if len(records) < 2:
            raise InputError(
                f"'{key}' has only one pair of neighbours in '{language}'", remedy="add more text"
            )
        rows = tf.nest.map_structure(lambda rows: rows.numpy(), rows)
        true.append((language, rows))
        # From far away: the next pairs of a text are of the same document.
        far = len(records) // 2
        others = {name: np.roll(ids, far, axis=0) for name, ids in rows["neighbour"].items()}
        shuffled.append((language, {**rows, "neighbour": others}))
    return {"cmlm": concatenate(true), "cmlm_shuffled": concatenate(shuffled)}


def _pack(
    settings: PretrainConfig, tokenizer: Tokenizer, sides: Sequence[tf.Tensor], *, seed: tf.Tensor
) -> dict:
    """Returns NEIGHBOUR_FEATURES of two columns of texts; the second is masked.

    All are padded to one length, since the slots' positions come after the padding.
    """
    neighbour, masked = (
        tokenizer.pack([tokenizer(side)], settings.sequence_length) for side in sides
    )
    masked = mask_for_pretraining(masked, settings, tokenizer, seed=seed)
    return {**masked, "neighbour": neighbour}
