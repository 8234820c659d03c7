"""Batches for pre-training: MLM over packed sentences, TLM over translation pairs."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.config import Config
from labse_tf.corpus_files import BITEXT, MONOLINGUAL
from labse_tf.data import texts
from labse_tf.data.masking import mask_tokens
from labse_tf.tokenization import Tokenizer
from vocab.wordpiece_file import RESERVED_TOKENS

_SENTENCES_PACKED_TOGETHER = 64
_SHUFFLED_SEQUENCES = 4096


def pretraining_batches(
    config: Config, tokenizer: Tokenizer, *, stage: int, skip: int = 0
) -> tf.data.Dataset:
    """Returns an endless dataset of masked global batches, in one fixed order.

    `pretrain.tlm_fraction` of the batches are TLM, the others MLM.

    Args:
      config: the run's configuration.
      tokenizer: of its vocabulary.
      stage: from 0; each stage has an order of its own.
      skip: the first batches to leave out, which a resumed run has seen.

    Returns:
      A dataset of the dicts that `mask_tokens` gives, `[batch_size, sequence_length]`.
    """
    settings = config.pretrain
    seed = config.seed + 1_000_003 * stage
    tasks, shares = [], []
    if settings.tlm_fraction < 1.0:
        tasks.append(_mlm_sequences(config, tokenizer, seed=seed))
        shares.append(1.0 - settings.tlm_fraction)
    if settings.tlm_fraction > 0.0:
        tasks.append(_tlm_sequences(config, tokenizer, seed=seed))
        shares.append(settings.tlm_fraction)
    batches = tasks[0]
    if len(tasks) == 2:
        batches = tf.data.Dataset.sample_from_datasets(tasks, shares, seed=seed)

    def mask(index, inputs):
        return mask_tokens(
            inputs,
            special_tokens=tokenizer.special_tokens,
            first_ordinary_id=len(RESERVED_TOKENS),
            mask_fraction=settings.mask_fraction,
            max_predictions=settings.max_predictions,
            seed=tf.stack([tf.constant(seed, tf.int64), index]),
        )

    return batches.enumerate().skip(skip).map(mask, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def _mlm_sequences(config: Config, tokenizer: Tokenizer, *, seed: int) -> tf.data.Dataset:
    """Sentences of one language, end to end, cut to full sequences `[CLS] ... [SEP]`."""
    settings = config.pretrain
    files = texts.find_files(
        settings.monolingual, MONOLINGUAL, config.languages, key="pretrain.monolingual"
    )
    body = settings.sequence_length - 2

    def pack(serialized):
        (strings,) = texts.parse(MONOLINGUAL, serialized)
        tokens = tokenizer(strings).flat_values
        # The end that fills no sequence is less than one sequence in many.
        sequences = tf.reshape(tokens[: tf.size(tokens) // body * body], [-1, body])
        return tokenizer.pack([tf.RaggedTensor.from_tensor(sequences)], settings.sequence_length)

    sentences = max(_SENTENCES_PACKED_TOGETHER, settings.sequence_length)
    blocks = {
        language: stream.batch(sentences)
        for language, stream in texts.language_streams(files, seed=seed).items()
    }
    weights = texts.language_weights(files, settings.language_exponent)
    mixed = texts.mix(blocks, weights, seed=seed)
    sequences = mixed.map(pack, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
    # A block gives neighbouring sequences of one language: shuffle them apart.
    sequences = sequences.shuffle(_SHUFFLED_SEQUENCES, seed=seed)
    return sequences.batch(settings.batch_size, drop_remainder=True)


def _tlm_sequences(config: Config, tokenizer: Tokenizer, *, seed: int) -> tf.data.Dataset:
    """Pairs as `[CLS] a [SEP] b [SEP]`; either side comes first, without a language hint."""
    settings = config.pretrain
    files = texts.find_files(settings.bitext, BITEXT, config.languages, key="pretrain.bitext")

    def pack(index, serialized):
        source, target = texts.parse(BITEXT, serialized)
        swap = tf.random.stateless_uniform(
            [settings.batch_size], tf.stack([tf.constant(seed, tf.int64), index])
        )
        first = tf.where(swap < 0.5, source, target)
        second = tf.where(swap < 0.5, target, source)
        return tokenizer.pack([tokenizer(first), tokenizer(second)], settings.sequence_length)

    streams = texts.language_streams(files, seed=seed + 1)
    weights = texts.language_weights(files, settings.language_exponent)
    pairs = texts.mix(streams, weights, seed=seed + 1)
    batches = pairs.batch(settings.batch_size, drop_remainder=True)
    return batches.enumerate().map(pack, num_parallel_calls=tf.data.AUTOTUNE)
