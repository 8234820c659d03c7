"""Evaluates a run: `RUN_DIR OUT.json [NAME:]TASK=DIR ... [--first-token]`, see run.py.

OUT.json has the record of each task of `labse eval`, by NAME, if it is given. With --first-token it
has another one of the vectors of [CLS] in the last layer, instead of the pooler's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from labse_tf.evaluation.task import find_task
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing

_LENGTHS = (8, 12, 16, 24, 32, 48, 64)
_BATCH = 128
# Options of tasks: five folds, as the quick setting of many papers.
_OPTIONS = {"senteval": {"folds": 5}}


class RunEncoder:
    """The encoder of a run dir.

    Attributes:
      first_token: whether to take [CLS] of the last layer.
    """

    def __init__(self, run_dir: str, longest: int) -> None:
        run = open_existing(run_dir)
        self.first_token = False
        self._lengths = [length for length in _LENGTHS if length <= longest]
        self._tokenizer, self._encoder = load_tokenizer(run), load_encoder(run)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, unit rows; texts are truncated to the longest."""
        tokens = self._tokenizer(tf.constant(list(texts)))
        counts = np.minimum(tokens.row_lengths().numpy() + 2, self._lengths[-1])
        lengths = np.asarray(self._lengths)[np.searchsorted(self._lengths, counts)]
        parts, order = [], []
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for start in range(0, len(rows), _BATCH):
                some = rows[start : start + _BATCH]
                packed = self._tokenizer.pack([tf.gather(tokens, some)], int(length))
                parts.append(self._embed(packed, tf.constant(self.first_token)).numpy())
                order.append(some)
        return np.concatenate(parts)[np.argsort(np.concatenate(order))]

    @tf.function(reduce_retracing=True)
    def _embed(self, packed: dict[str, tf.Tensor], first_token: tf.Tensor) -> tf.Tensor:
        outputs = self._encoder(packed, training=False)
        pooled = outputs["pooled_output"]
        if "sequence_output" in outputs:
            pooled = tf.where(first_token, outputs["sequence_output"][:, 0], pooled)
        return tf.math.l2_normalize(tf.cast(pooled, tf.float32), axis=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", metavar="RUN_DIR")
    parser.add_argument("out", type=Path, metavar="OUT.json")
    parser.add_argument("tests", nargs="*", metavar="[NAME:]TASK=DIR")
    parser.add_argument("--first-token", action="store_true")
    parser.add_argument("--longest", type=int, default=32, help="tokens (default: %(default)s)")
    args = parser.parse_args()
    encoder = RunEncoder(args.run_dir, args.longest)
    scores = {}
    for first_token in (False, True) if args.first_token else (False,):
        encoder.first_token = first_token
        for test in args.tests:
            name, _, folder = test.partition("=")
            task = name.partition(":")[2] or name
            name = name.partition(":")[0]
            found = find_task(task).evaluate(encoder, folder, **_OPTIONS.get(task, {}))
            scores[f"{name}, [CLS]" if first_token else name] = found
    args.out.write_text(json.dumps(scores) + "\n", "utf-8")


if __name__ == "__main__":
    main()
