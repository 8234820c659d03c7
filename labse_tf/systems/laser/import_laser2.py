"""LASER2 as a model dir; `labse_tf.systems.laser.import_2018` has the older encoder."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from export.model_dir import export
from export.source import Source
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.laser.tokenizer import LaserTokenizer
from labse_tf.systems.laser.weights import LaserWeights, assign, read_laser


def import_laser(
    weights_file: str | os.PathLike[str],
    sentencepiece_file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    **options: Any,
) -> None:
    """Writes a model dir of LASER's encoder.

    Args:
      weights_file: as for `read_laser`.
      sentencepiece_file: its model of SentencePiece.
      out: the model dir.
      **options: as for `export`.

    Raises:
      InputError: if a file is not what it should be, or as `export` raises.
    """
    found = read_laser(weights_file)
    tokenizer = LaserTokenizer(sentencepiece_file, found.dictionary)
    source = source_of(found, tokenizer.tokens, weights_file)
    export(dataclasses.replace(source, tokenizer=tokenizer), out, **options)


def source_of(
    found: LaserWeights, tokens: list[str], weights_file: str | os.PathLike[str]
) -> Source:
    """Returns the encoder with its weights, and what is known of it.

    Raises:
      InputError: if the file has more tokens than vectors.
    """
    if len(tokens) > found.config.vocab_size:
        raise InputError(
            f"has {len(tokens)} tokens and {found.config.vocab_size} vectors",
            path=weights_file,
            remedy="fetch it again",
        )
    encoder = build_encoder(found.config)
    assign(encoder, found.weights)
    return Source(
        encoder, found.config, tokens, max_bytes_per_word=0, languages=None, training=None
    )
