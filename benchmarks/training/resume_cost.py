"""What a resumed run's input costs: seconds until the first batch, by the steps done before.

    python -m benchmarks.training.resume_cost CONFIG [--set KEY=VALUE ...]
        [--steps 10 1010 10010 100010] [--replayed 1010 10010]

CONFIG is a configuration for `labse train` and `labse pretrain` with corpora for both. Measured are
pairs and masked sequences as runs read them, and, for the steps of --replayed, as they would be
read if all batches before were made and thrown away. Records are counted and files read once
before. The time includes building the pipeline.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
import tensorflow as tf

from benchmarks import machine
from labse_tf.config import load_config
from labse_tf.data import streams
from labse_tf.data.pairs import pair_batches
from labse_tf.tokenization.open import open_tokenizer
from labse_tf.training.pretrain import masked_batches
from labse_tf.training.runs.run_dir import resolve


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--steps", type=int, nargs="+", default=[10, 1010, 10_010, 100_010])
    parser.add_argument("--replayed", type=int, nargs="*", default=[1010, 10_010])
    args = parser.parse_args()
    config = load_config(args.config, args.overrides)
    config = resolve(config, [*config.train.bitext, *config.pretrain.monolingual])
    tokenizer = open_tokenizer(
        config.tokenizer.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )
    print(machine.describe())
    tf.keras.utils.set_random_seed(config.seed)
    order = {"languages": config.languages, "seed": config.seed}
    sources = {
        "pairs": pair_batches(config.train, tokenizer, **order),
        "masked sequences": lambda step: masked_batches(config, tokenizer, 0, step),
    }
    for name, batches in sources.items():
        first_batch_after(batches, 0)
        for step in args.steps:
            print(f"{name}, step {step}: {first_batch_after(batches, step):.1f} s", flush=True)
        segment, streams.SEGMENT = streams.SEGMENT, 10**12
        for step in args.replayed:
            seconds = first_batch_after(batches, step)
            print(f"{name}, step {step}, replayed: {seconds:.1f} s", flush=True)
        streams.SEGMENT = segment


def first_batch_after(batches: Callable[[int], tf.data.Dataset], step: int) -> float:
    start = time.perf_counter()
    next(iter(batches(step)))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
