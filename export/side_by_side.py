"""Several encoders without layers as one: their vectors side by side."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from export.source import Source
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder

_OF_ONE_TABLE = ("matryoshka", "dev_accuracy", "dev_accuracy_by_language")


def put_side_by_side(sources: Sequence[Source], names: Sequence[str | os.PathLike[str]]) -> Source:
    """Returns an encoder whose token vectors are those of all `sources`, one after the other.

    An average of these is the averages side by side, so the cosine of two sentences is a mean of
    the encoders' cosines, each weighted by the lengths of its vectors. These are made comparable:
    each table is divided by the root mean square of its rows' lengths. Encoders that were trained
    in different ways err in different places, and together less often (an ensemble).

    Args:
      sources: encoders without layers, of one vocabulary; the facts are those of the first, with
        the training of the others in `beside`.
      names: for error messages.

    Raises:
      InputError: if one has layers or another vocabulary.
    """
    first = sources[0]
    for source, name in zip(sources, names, strict=True):
        if source.config.num_layers:
            raise InputError(
                f"has {source.config.num_layers} layers; vectors are put side by side in a table",
                path=name,
                remedy="name runs of encoders without layers",
            )
        if source.tokens != first.tokens or source.max_bytes_per_word != first.max_bytes_per_word:
            raise InputError(
                f"has another vocabulary than {names[0]}",
                path=name,
                remedy="train it with the same one",
            )
    table = np.concatenate([_scaled_table(source) for source in sources], axis=1)
    config = dataclasses.replace(first.config, hidden_size=table.shape[1])
    encoder = build_encoder(config)
    encoder.get_embedding_table().assign(table)
    return dataclasses.replace(first, encoder=encoder, config=config, training=_training(sources))


def _scaled_table(source: Source) -> np.ndarray:
    table = source.encoder.get_embedding_table().numpy()
    return table / np.sqrt(np.square(table).sum(axis=1).mean())


def _training(sources: Sequence[Source]) -> dict[str, Any] | None:
    first, *others = (source.training for source in sources)
    if first is None:
        return None
    # Accuracy and leading columns were the first's own.
    kept = {key: value for key, value in first.items() if key not in _OF_ONE_TABLE}
    return {**kept, "dev_accuracy": None, "beside": others}
