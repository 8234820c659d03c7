"""Batches of single texts of similar length: sentences and both sides of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data import streams, texts
from labse_tf.data.pairs import BATCHES_PER_WINDOW, smallest_bucket, sorted_windows
from labse_tf.data.record_counts import count_records, language_weights
from labse_tf.files.record_kinds import BITEXT, KINDS, MONOLINGUAL
from labse_tf.systems.distill.config import DistillConfig
from labse_tf.tokenization.protocol import Tokenizer

_RECORDS_AT_ONCE = 1024
# Kind of corpus -> the configuration key that lists its corpora.
_KEYS = {MONOLINGUAL: "distill.monolingual", BITEXT: "train.bitext"}


def text_stream(
    distill: DistillConfig,
    train: TrainConfig,
    *,
    languages: Sequence[str],
    seed: int,
    before: int = 0,
) -> tf.data.Dataset:
    """Returns an endless, shuffled dataset of texts (scalar strings), in a fixed order.

    A corpus is sampled like a language in it: in proportion to its number of texts to the power of
    `train.language_exponent`. A pair counts as two texts.

    Args:
      distill: `monolingual`.
      train: `bitext`, and how both are sampled.
      languages: codes; other languages are left out. An empty list means all.
      seed: determines the order.
      before: number of texts drawn before.

    Raises:
      InputError: if there is no corpus, or it has no text in `languages`.
    """
    files, weights = {}, {}
    inputs = {MONOLINGUAL: distill.monolingual, BITEXT: train.bitext}
    exponent = train.language_exponent
    for kind, key in _KEYS.items():
        if not inputs[kind] and any(inputs.values()):
            continue
        files[kind] = texts.find_files(inputs[kind], kind, languages, key=key)
        records = sum(count_records(files[kind]).values())
        weights[kind] = (len(KINDS[kind].fields) * records) ** exponent
    by_kind = {}
    for kind, found in files.items():
        within = language_weights(found, exponent)
        share = weights[kind] / sum(weights.values()) / len(KINDS[kind].fields)
        drawn = streams.drawn_of(within, before * share)
        by_language = streams.language_streams(found, seed=seed, drawn=drawn)
        by_kind[kind] = _texts_of(streams.mix(by_language, within, seed=seed), kind)
    return streams.mix(by_kind, weights, seed=seed)


def text_batches(
    distill: DistillConfig,
    settings: TrainConfig,
    tokenizer: Tokenizer,
    *,
    languages: Sequence[str],
    seed: int,
    step: int = 0,
) -> tf.data.Dataset:
    """Returns an endless dataset of global batches, in a fixed order.

    As in `pair_batches`, a window of 16 batches is sorted by length; each batch is padded to the
    smallest bucket that holds its longest text.

    Args:
      distill: `monolingual`.
      settings: `bitext`, how both are sampled, and how their texts are cut.
      tokenizer: the tokeniser of the run's vocabulary.
      languages: codes; other languages are left out. An empty list means all.
      seed: determines the order.
      step: number of batches before, which a resumed run has seen.

    Returns:
      A dataset of ENCODER_INPUTS, `[train.batch_size, bucket length]`.
    """

    def measure(window):
        return (window,), tokenizer(window).row_lengths()

    @tf.autograph.experimental.do_not_convert
    def pack(column):
        tokens = tokenizer(column)
        longest = 2 + tf.reduce_max(tokens.row_lengths())
        length = smallest_bucket(longest, settings.bucket_lengths)
        return tokenizer.pack([tokens], length)

    place = streams.position(step, seed)
    before = place.start * settings.batch_size
    stream = text_stream(distill, settings, languages=languages, seed=place.seed, before=before)
    windows = stream.batch(settings.batch_size * BATCHES_PER_WINDOW, drop_remainder=True)
    batches = sorted_windows(windows, measure, settings.batch_size, skip=place.skip)
    return batches.map(pack, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def _texts_of(records: tf.data.Dataset, kind: str) -> tf.data.Dataset:
    @tf.autograph.experimental.do_not_convert
    def parse(serialized):
        return tf.concat(texts.parse(kind, serialized), axis=0)

    return records.batch(_RECORDS_AT_ONCE).map(parse).unbatch()
