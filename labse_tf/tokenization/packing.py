"""Packs token ids as BERT's inputs."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf
from official.nlp.modeling import layers

_SPECIAL = ("start_of_sequence_id", "end_of_segment_id", "padding_id")


def pack_segments(
    segments: list[tf.RaggedTensor], length: int | tf.Tensor, special_tokens: Mapping[str, int]
) -> dict[str, tf.Tensor]:
    """Packs one or two segments as `[CLS] a [SEP] b [SEP]`, truncated round-robin and padded.

    Args:
      segments: int32 ragged `[batch, (tokens)]` each.
      length: length of the result, tokens.
      special_tokens: ids, as `Tokenizer.special_tokens`.

    Returns:
      `input_word_ids`, `input_mask`, `input_type_ids`: int32 `[batch, length]` each.
    """
    ids = {name: special_tokens[name] for name in _SPECIAL}
    return layers.BertPackInputs.bert_pack_inputs(segments, length, **ids)
