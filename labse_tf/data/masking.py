"""Masks tokens for MLM and TLM (Devlin et al. 2019, section 3.1; LaBSE, section 3.2)."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.config import PretrainConfig
from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.tokenization.protocol import Tokenizer
from vocab.wordpiece_file import RESERVED_TOKENS

MASKED_FEATURES: Features = {
    **ENCODER_INPUTS,
    "masked_positions": tf.TensorSpec([None, None], tf.int32),
    "masked_ids": tf.TensorSpec([None, None], tf.int32),
    "masked_weights": tf.TensorSpec([None, None], tf.float32),
}

_MASK_SHARE, _RANDOM_SHARE = 0.8, 0.1  # The rest keep their tokens.


def mask_for_pretraining(
    inputs: dict[str, tf.Tensor], settings: PretrainConfig, tokenizer: Tokenizer, *, seed: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns what `mask_tokens` does with `settings` and the vocabulary of `tokenizer`."""
    return mask_tokens(
        inputs,
        special_tokens=tokenizer.special_tokens,
        first_ordinary_id=len(RESERVED_TOKENS),
        mask_fraction=settings.mask_fraction,
        max_predictions=settings.max_predictions,
        seed=seed,
    )


def mask_tokens(
    inputs: dict[str, tf.Tensor],
    *,
    special_tokens: dict[str, int],
    first_ordinary_id: int,
    mask_fraction: float,
    max_predictions: int,
    seed: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Chooses tokens to predict: 80 % become [MASK], 10 % a random token, 10 % stay unchanged.

    Special tokens and padding are never chosen. The choice depends only on `seed`.

    Args:
      inputs: int32 `[batch, length]` tensors as `Tokenizer.pack` returns them; with
        `input_positions`, sequences of several texts, each of which has its fraction chosen.
      special_tokens: `Tokenizer.special_tokens`.
      first_ordinary_id: random tokens are drawn from this id to the end of the vocabulary.
      mask_fraction: fraction of a sequence's ordinary tokens to predict; rounded, at least 1 token.
      max_predictions: maximum per sequence.
      seed: `[2]` integer tensor.

    Returns:
      `inputs` with tokens masked, and `masked_positions` (int32 `[batch, max_predictions]`),
      `masked_ids` (int32, the original tokens) and `masked_weights` (float32, 0 where a sequence
      has fewer).
    """
    word_ids = inputs["input_word_ids"]
    is_special = (inputs["input_mask"] == 0) | tf.reduce_any(
        [
            word_ids == special_tokens[name]
            for name in ("start_of_sequence_id", "end_of_segment_id", "padding_id")
        ],
        axis=0,
    )
    seeds = tf.random.split(seed, 3)
    # The top k of independent uniform draws are a uniform sample without replacement.
    draws = tf.where(is_special, -1.0, tf.random.stateless_uniform(tf.shape(word_ids), seeds[0]))
    # One text a sequence needs none of the sorting, which would take three times as long.
    if "input_positions" in inputs:
        draws = _keep_fraction_of_texts(draws, inputs["input_positions"], mask_fraction)
    drawn, positions = tf.math.top_k(draws, k=min(max_predictions, word_ids.shape[1]))
    chosen = drawn >= 0.0
    if "input_positions" not in inputs:
        ordinary = tf.reduce_sum(tf.cast(~is_special, tf.float32), axis=1, keepdims=True)
        rank = tf.range(tf.shape(positions)[1], dtype=tf.float32)[tf.newaxis]
        chosen &= rank < _wanted(ordinary, mask_fraction)
    masked_ids = tf.gather(word_ids, positions, batch_dims=1)
    hidden = _hide(masked_ids, seeds[1:], special_tokens, first_ordinary_id)
    replacement = tf.where(chosen, hidden, masked_ids)
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, tf.newaxis], tf.shape(positions))
    return {
        **inputs,
        "input_word_ids": tf.tensor_scatter_nd_update(
            word_ids, tf.stack([rows, positions], axis=-1), replacement
        ),
        "masked_positions": positions,
        "masked_ids": masked_ids,
        "masked_weights": tf.cast(chosen, tf.float32),
    }


def _wanted(ordinary: tf.Tensor, mask_fraction: float) -> tf.Tensor:
    return tf.maximum(1.0, tf.round(ordinary * mask_fraction))


def _keep_fraction_of_texts(
    draws: tf.Tensor, positions: tf.Tensor, mask_fraction: float
) -> tf.Tensor:
    """Returns `draws` with -1 in place of all but the highest of each text."""
    rows, length = tf.unstack(tf.shape(draws))
    text = tf.cumsum(tf.cast(positions == 0, tf.int32), axis=1)
    # Sorted by text, then by draw: the texts stay in place, so the token that comes to place k is
    # of the same text as the token that was there, and its rank in it is `positions[k]`.
    order = tf.argsort(2.0 * tf.cast(text, tf.float32) - draws, stable=True)
    text_of_batch = text + tf.range(rows)[:, tf.newaxis] * (length + 1)
    is_ordinary = tf.cast(draws >= 0.0, tf.float32)
    ordinary = tf.math.unsorted_segment_sum(is_ordinary, text_of_batch, rows * (length + 1))
    wanted = _wanted(tf.gather(ordinary, text_of_batch), mask_fraction)
    is_kept = tf.cast(positions, tf.float32) < wanted
    return tf.where(tf.gather(is_kept, tf.argsort(order), batch_dims=1), draws, -1.0)


def _hide(
    ids: tf.Tensor, seeds: tf.Tensor, special_tokens: dict[str, int], first_ordinary_id: int
) -> tf.Tensor:
    draw = tf.random.stateless_uniform(tf.shape(ids), seeds[0])
    random_ids = tf.random.stateless_uniform(
        tf.shape(ids), seeds[1], first_ordinary_id, special_tokens["vocab_size"], tf.int32
    )
    return tf.where(
        draw < _MASK_SHARE,
        special_tokens["mask_id"],
        tf.where(draw < _MASK_SHARE + _RANDOM_SHARE, random_ids, ids),
    )
