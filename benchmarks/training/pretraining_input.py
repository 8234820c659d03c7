"""Does pre-training wait for its input? Measures tf.data alone and the step alone.

    python -m benchmarks.training.pretraining_input CONFIG [--set KEY=VALUE ...] [--batches 40]

CONFIG is a configuration for `labse pretrain`. Prints batches per second of the input pipeline
alone, steps per second on one batch held in memory, for the depths of the first and the last stage,
their ratios, and the share of MLM's tokens that is not padding.
"""

from __future__ import annotations

import argparse
import itertools
import time

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
import numpy as np
import tensorflow as tf

from benchmarks import machine
from labse_tf.config import TrainRun, load_config
from labse_tf.data.pretraining import pretraining_batches
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import add_heads
from labse_tf.model.stacking import stage_depths
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from labse_tf.training.fit import Trainer
from labse_tf.training.objectives import MaskedTokens
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.runs.run_dir import resolve


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    config = load_config(args.config, args.overrides)
    config = resolve(config, [*config.pretrain.monolingual, *config.pretrain.bitext])
    print(machine.describe())
    batch, input_rate = _measure_input(config, args.batches)
    for depth in sorted({*_ends(config)}):
        step_rate = _measure_step(config, batch, depth, args.steps)
        print(
            f"step of {depth} layers: {step_rate:.2f} a second; "
            f"the input gives {input_rate / step_rate:.1f} times that"
        )


def _ends(config: TrainRun) -> tuple[int, int]:
    depths = stage_depths(config.encoder.num_layers, len(config.pretrain.stage_steps))
    return depths[0], depths[-1]


def _measure_input(config: TrainRun, count: int) -> tuple[dict[str, tf.Tensor], float]:
    tokenizer = WordPieceTokenizer(
        config.tokenizer.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )
    order = {"languages": config.languages, "seed": config.seed, "stage": 0}
    batches = iter(pretraining_batches(config.pretrain, tokenizer, **order))
    start = time.perf_counter()
    first = next(batches)
    print(f"first batch after {time.perf_counter() - start:.1f} s")
    for _ in range(count // 2):  # Prefetched batches do not count.
        next(batches)
    start = time.perf_counter()
    taken = list(itertools.islice(batches, count))
    rate = count / (time.perf_counter() - start)
    filled = [np.mean(one["input_mask"]) for one in taken if not np.any(one["input_type_ids"])]
    tokens = np.mean([np.sum(one["input_mask"]) for one in taken])
    print(f"input: {rate:.2f} batches a second, {rate * tokens:.0f} tokens a second")
    if filled:
        print(f"MLM sequences: {100 * np.mean(filled):.2f} % are no padding")
    return first, rate


def _measure_step(config: TrainRun, batch: dict[str, tf.Tensor], depth: int, steps: int) -> float:
    encoder = build_encoder(
        config.encoder, num_layers=depth, compute=config.compute, replayable=True
    )
    settings = config.pretrain
    trainer = Trainer(
        MaskedTokens(**add_heads(encoder, config), samples=settings.sampled_softmax),
        strategy=tf.distribute.get_strategy(),
        optimizer=build_optimizer(settings.optimizer, steps=1000),
        clip_norm=settings.optimizer.clip_norm,
        dataset=tf.data.Dataset.from_tensors(batch).repeat(),
    )
    trainer.train(tf.constant(1))
    start = time.perf_counter()
    trainer.train(tf.constant(steps))
    return steps / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
