"""Dev pairs of the dual encoder: a small pool of translation pairs per language."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data import texts
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT

_RECORDS_AT_ONCE = 1024

BytesPair = tuple[bytes, bytes]

_log = logging.getLogger("labse")


def read_dev_pairs(settings: TrainConfig, languages: Sequence[str]) -> dict[str, list[BytesPair]]:
    """Returns the pool of each language of `train.dev`: UTF-8 pairs, English first.

    A pool is the first `train.dev_size` pairs in file name order, without pairs that repeat a
    source or target: of two equal texts, neither could be told to be the right one. Languages with
    a single pair are left out, as it would always be found.

    Raises:
      InputError: if there are none, or a file is broken.
    """
    files = texts.find_files(settings.dev, BITEXT, languages, key="train.dev")
    language_of = attrgetter("language")
    pools = {}
    for language, group in groupby(sorted(files, key=language_of), key=language_of):
        records = texts.concatenate([texts.records(file) for file in sorted(group)])
        with texts.input_errors():
            pools[language] = distinct(_pairs(records), settings.dev_size)
    too_small = [language for language, pool in pools.items() if len(pool) < 2]
    if len(too_small) == len(pools):
        raise InputError(
            "'train.dev' has no language with two different pairs",
            remedy="name a corpus with more pairs, or leave it empty",
        )
    if too_small:
        _log.info("'train.dev' has fewer than two pairs in %s: left out", ", ".join(too_small))
    return {language: pool for language, pool in pools.items() if language not in too_small}


def distinct(pairs: Iterable[BytesPair], size: int) -> list[BytesPair]:
    """Returns the first `size` pairs whose source and target both occur for the first time."""
    sources, targets = set(), set()
    kept: list[BytesPair] = []
    for source, target in pairs:
        if source in sources or target in targets:
            continue
        kept.append((source, target))
        if len(kept) == size:
            break
        sources.add(source)
        targets.add(target)
    return kept


def _pairs(records: tf.data.Dataset) -> Iterable[BytesPair]:
    for some in records.batch(_RECORDS_AT_ONCE):
        sources, targets = (side.numpy() for side in texts.parse(BITEXT, some))
        yield from zip(sources, targets, strict=True)
