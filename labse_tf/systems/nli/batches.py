"""Batches of pairs for natural language inference, their sides in different languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.evaluation.texts import InferencePairs, labels_of
from labse_tf.tokenization.protocol import Tokenizer

INFERENCE_FEATURES: Features = {
    "premise": ENCODER_INPUTS,
    "hypothesis": ENCODER_INPUTS,
    "label": tf.TensorSpec([None], tf.int32),
}
_ORDER, _LANGUAGES = range(2)  # Of random numbers.


def inference_batches(
    sets: Sequence[InferencePairs],
    tokenizer: Tokenizer,
    *,
    batch_size: int,
    sequence_length: int,
    seed: int,
    step: int = 0,
) -> tf.data.Dataset:
    """Returns an endless dataset of INFERENCE_FEATURES, in an order that `seed` determines.

    Each pass has every pair once. A pair's premise is in a random language of its set, its
    hypothesis in another one, if there is any.

    Args:
      sets: what to draw from.
      tokenizer: of the run's vocabulary.
      batch_size: rows.
      sequence_length: tokens of each sentence, `[CLS]` and `[SEP]` included.
      seed: of the order and the languages.
      step: number of batches before, which a resumed run has seen.
    """
    ids = {label: place for place, label in enumerate(labels_of(sets))}

    def draw() -> Iterator[tuple[list[str], list[str], list[int]]]:
        for batch in _draws(sets, batch_size, seed=seed, step=step):
            premises, hypotheses, labels = zip(*batch, strict=True)
            yield list(premises), list(hypotheses), [ids[label] for label in labels]

    @tf.autograph.experimental.do_not_convert
    def pack(premises: tf.Tensor, hypotheses: tf.Tensor, labels: tf.Tensor) -> dict:
        sides = {"premise": premises, "hypothesis": hypotheses}
        packed = {
            name: tokenizer.pack([tokenizer(texts)], sequence_length)
            for name, texts in sides.items()
        }
        return {**packed, "label": labels}

    texts = tf.TensorSpec([batch_size], tf.string)
    drawn = tf.data.Dataset.from_generator(
        draw, output_signature=(texts, texts, tf.TensorSpec([batch_size], tf.int32))
    )
    return drawn.map(pack, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def _draws(
    sets: Sequence[InferencePairs], batch_size: int, *, seed: int, step: int
) -> Iterator[list[tuple[str, str, str]]]:
    """Yields batches of premise, hypothesis and label."""
    rows = [(pairs, place) for pairs in sets for place in range(len(pairs.labels))]
    languages = [list(pairs.texts) for pairs, _ in rows]
    order: dict[int, np.ndarray] = {}
    while True:
        numbers = range(step * batch_size, (step + 1) * batch_size)
        passes = {number // len(rows) for number in numbers}
        # One batch may end a pass and begin the next; the others' orders are of no more use.
        order = {
            one: order[one]
            if one in order
            else np.random.default_rng([seed, _ORDER, one]).permutation(len(rows))
            for one in passes
        }
        random = np.random.default_rng([seed, _LANGUAGES, step])
        batch = []
        for number in numbers:
            row = order[number // len(rows)][number % len(rows)]
            (pairs, place), known = rows[row], languages[row]
            one, other = _two(known, random)
            batch.append(
                (pairs.texts[one][place][0], pairs.texts[other][place][1], pairs.labels[place])
            )
        yield batch
        step += 1


def _two(languages: Sequence[str], random: np.random.Generator) -> tuple[str, str]:
    """Returns two different languages; the same twice if there is one."""
    first = random.integers(len(languages))
    second = (first + 1 + random.integers(max(1, len(languages) - 1))) % len(languages)
    return languages[first], languages[second]
