"""Scores a run of the ablations on each test: `RUN_DIR TESTS RESULT.json`, see ablations.py.

For each folder of TESTS the result has the metrics that `labse train` measures on its dev pairs.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import tensorflow as tf

from labse_tf.config import TrainRun
from labse_tf.data.held_out import read_dev_pairs
from labse_tf.files.outputs import whole_file
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from labse_tf.training.validation import DevEvaluator


def main(run_dir: str, tests: str, result: str) -> None:
    run = open_existing(run_dir)
    config = run.read_config(TrainRun)
    tokenizer = load_tokenizer(run)
    # The newest: in runs that measure during training, the best was selected on the test.
    encoder = load_encoder(run, checkpoint=tf.train.latest_checkpoint(run.checkpoints))
    scores = {}
    for test in sorted(Path(tests).iterdir()):
        train = dataclasses.replace(config.train, dev=[str(test)], dev_size=1000)
        evaluator = DevEvaluator(
            strategy=tf.distribute.get_strategy(),
            encoder=encoder,
            tokenizer=tokenizer,
            pools=read_dev_pairs(train, config.languages),
            lengths=train.bucket_lengths,
        )
        [scores[test.name]] = evaluator.evaluate(tf.constant(-1)).values()
    with whole_file(Path(result), overwrite=True) as partial:
        partial.write_text(json.dumps(scores) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
