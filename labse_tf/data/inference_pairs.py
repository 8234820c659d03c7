"""Pairs for natural language inference: the same ones in several languages, and their batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.errors import InputError
from labse_tf.files.local_paths import local_path
from labse_tf.files.textio import COMPRESSIONS, ends_early, read_lines
from labse_tf.languages import require_code
from labse_tf.tokenization.protocol import Tokenizer

NO_LABEL = "-"
INFERENCE_FEATURES: Features = {
    "premise": ENCODER_INPUTS,
    "hypothesis": ENCODER_INPUTS,
    "label": tf.TensorSpec([None], tf.int32),
}
_ORDER, _LANGUAGES = range(2)  # Of random numbers.


class InferencePairs(NamedTuple):
    """The same `n` pairs in each of some languages.

    Attributes:
      texts: language -> `n` tuples of premise and hypothesis.
      labels: `n` labels.
    """

    texts: dict[str, list[tuple[str, str]]]
    labels: list[str]


def read_inference_pairs(entry: str) -> InferencePairs:
    """Reads aligned files `[NAME.]<lang>.tsv`, also compressed.

    Args:
      entry: a folder of them, a file, or a glob.

    Raises:
      InputError: if there are none, two have the same language, a line lacks a column, or one file
        has fewer lines.
    """
    paths = _find(entry)
    rows: dict[str, list[list[str]]] = {}
    for path in paths:
        language = require_code(_stem(path).rpartition(".")[2], path=path)
        if language in rows:
            raise InputError(
                f"is a second file in '{language}'",
                path=path,
                remedy="name the files of one set, such as 'xnli/dev.*'",
            )
        rows[language] = [_split(line, path, number) for number, line in read_lines(path)]
    longest = max(map(len, rows.values()))
    for path, found in zip(paths, rows.values(), strict=True):
        if len(found) < longest:
            other = paths[[len(one) for one in rows.values()].index(longest)]
            raise ends_early(path, other, len(found))
    labels = [[row[2] for row in same] for same in zip(*rows.values(), strict=True)]
    kept = [place for place, same in enumerate(labels) if NO_LABEL not in same]
    return InferencePairs(
        {
            language: [(found[place][0], found[place][1]) for place in kept]
            for language, found in rows.items()
        },
        [labels[place][0] for place in kept],
    )


def _find(entry: str) -> list[str]:
    entry = local_path(entry)
    if os.path.isdir(entry):
        found = [str(path) for path in sorted(Path(entry).iterdir()) if path.is_file()]
        found = [path for path in found if _stem(path) != os.path.basename(path)]
    else:
        found = sorted(glob.glob(entry)) if glob.has_magic(entry) else [entry]
    if not found or not all(os.path.isfile(path) for path in found):
        raise InputError(
            "no files <lang>.tsv of premise, hypothesis and label",
            path=entry,
            remedy="check the path",
        )
    return found


def _stem(path: str) -> str:
    """Returns the name without `.tsv` and compression; the whole name of another file."""
    name = os.path.basename(path)
    base = next((name.removesuffix(end) for end in COMPRESSIONS if name.endswith(end)), name)
    return base.removesuffix(".tsv") if base.endswith(".tsv") else name


def _split(line: str, path: str, number: int) -> list[str]:
    columns = [column.strip() for column in line.split("\t")[:3]]
    if len(columns) < 3 or not all(columns):
        raise InputError(
            "the line has no premise, hypothesis and label",
            path=path,
            line=number,
            remedy="separate them by tabs",
        )
    return columns


def labels_of(sets: Sequence[InferencePairs]) -> list[str]:
    """Returns the distinct labels, sorted: their places are the classifier's outputs."""
    return sorted({label for pairs in sets for label in pairs.labels})


def inference_batches(
    sets: Sequence[InferencePairs],
    tokenizer: Tokenizer,
    *,
    batch_size: int,
    sequence_length: int,
    seed: int,
    skip: int = 0,
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
      skip: number of batches to skip at the start.
    """
    ids = {label: place for place, label in enumerate(labels_of(sets))}

    def draw() -> Iterator[tuple[list[str], list[str], list[int]]]:
        for batch in _draws(sets, batch_size, seed=seed, skip=skip):
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
    sets: Sequence[InferencePairs], batch_size: int, *, seed: int, skip: int
) -> Iterator[list[tuple[str, str, str]]]:
    """Yields batches of premise, hypothesis and label."""
    rows = [(pairs, place) for pairs in sets for place in range(len(pairs.labels))]
    languages = [list(pairs.texts) for pairs, _ in rows]
    order: dict[int, np.ndarray] = {}
    step = skip
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
