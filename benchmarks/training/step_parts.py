"""Where a training step of the dual encoder spends its time, without layers and with some.

    python -m benchmarks.training.step_parts PAIRS VOCAB [--layers 0 1 2 4] [--hidden-size 256]

PAIRS is a folder of `<lang>.tsv`, VOCAB a vocab.txt. Without layers it is configs/static.yaml, with
layers benchmarks/race/layers.yaml; both with the same batches, in one process per depth. Prints, in
Markdown, pairs per second of the whole step, and milliseconds per batch of its parts:

- text: reading, tokenising and sorting a batch, which the token cache spares all steps;
- input: the same from the cache, beside the step, on the same cores;
- forward: tokens' vectors, layers and pooling;
- loss and gradients: the rest of what is differentiated;
- update: clipping and the optimiser;
- memory: how long it takes at least to read the distinct rows of the batch, and to read and write
  them once more in the update, at the speed at which this machine copies 256 MB.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import time

import numpy as np

from benchmarks import machine

_CONFIGS = {True: "benchmarks/race/layers.yaml", False: "configs/static.yaml"}
_PARTS = ("text", "input", "forward", "loss and gradients", "update", "memory")
_COPIED = 1 << 28  # Bytes.


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", metavar="PAIRS")
    parser.add_argument("vocab", metavar="VOCAB")
    parser.add_argument("--layers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--hidden-size", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=2048, help="pairs")
    parser.add_argument("--batches", type=int, default=24)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(_measure(args)))
        return
    print(f"{machine.describe()}\n\n| layers | pairs/s | {' | '.join(_PARTS)} |")
    print("|---" * (2 + len(_PARTS)) + "|")
    for layers in args.layers:
        command = [sys.executable, "-m", "benchmarks.training.step_parts", args.pairs, args.vocab]
        options = {"hidden-size": args.hidden_size, "batch-size": args.batch_size}
        options |= {"batches": args.batches, "layers": layers}
        command += [f"--{key}={value}" for key, value in options.items()]
        done = subprocess.run([*command, "--one"], stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        cells = [f"{1000 * found[part]:.1f}" for part in _PARTS]
        print(f"| {layers} | {found['pairs per second']:,.0f} | {' | '.join(cells)} |", flush=True)


def _measure(args: argparse.Namespace) -> dict[str, float]:
    """Returns seconds per batch of each part, and pairs per second of the step."""
    import tensorflow as tf

    from labse_tf.config import load_config
    from labse_tf.data.pairs import pair_batches
    from labse_tf.model.encoder import build_encoder, embed
    from labse_tf.model.subwords import Subwords
    from labse_tf.tokenization.wordpiece import WordPieceTokenizer
    from labse_tf.training.fit import Trainer
    from labse_tf.training.objectives import DualEncoder
    from labse_tf.training.optimizer import build_optimizer
    from vocab import wordpiece_file

    (layers,) = args.layers
    tokens = wordpiece_file.read(args.vocab)
    config = load_config(
        _CONFIGS[bool(layers)],
        [
            f"train.bitext=[{args.pairs}]",
            f"train.batch_size={args.batch_size}",
            f"encoder.vocab_size={len(tokens)}",
            f"encoder.hidden_size={args.hidden_size}",
            f"encoder.num_layers={layers}",
        ],
    )
    tokenizer = WordPieceTokenizer(
        args.vocab, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )

    def batches(*, cached: bool) -> tf.data.Dataset:
        settings = dataclasses.replace(config.train, cache_tokens=cached)
        return pair_batches(settings, tokenizer, languages=(), seed=1)(0)

    kept = list(batches(cached=True).take(args.batches))
    repeated = tf.data.Dataset.from_generator(
        lambda: iter(kept), output_signature=batches(cached=False).element_spec
    ).repeat()
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        sizes = config.encoder
        subwords = None
        if sizes.has_parts:
            subwords = Subwords(tokens, sizes.subwords, sizes.ngrams)
        encoder = build_encoder(sizes, compute=config.compute, replayable=True, subwords=subwords)
        optimizer = build_optimizer(config.train.optimizer, steps=1000, layers=layers)
    objective = DualEncoder(encoder, config.train)
    trainer = Trainer(
        objective,
        strategy=strategy,
        optimizer=optimizer,
        clip_norm=config.train.optimizer.clip_norm,
        dataset=strategy.experimental_distribute_dataset(repeated),
    )

    def forward(batch):
        inputs = {
            name: tf.concat([batch["source"][name], batch["target"][name]], axis=0)
            for name in batch["source"]
        }
        return embed(encoder, inputs, training=True)

    def gradients(batch):
        loss, _, found = objective.gradients(batch, optimizer.iterations, lazy=True)
        return tf.linalg.global_norm(found) + loss

    def seconds(function) -> float:
        graph = tf.function(lambda batch: strategy.run(function, (batch,)), reduce_retracing=True)
        for batch in kept:
            graph(batch)
        start = time.perf_counter()
        for batch in kept:
            graph(batch)
        return (time.perf_counter() - start) / len(kept)

    through = seconds(forward)
    differentiated = seconds(gradients)
    trainer.train(tf.constant(args.batches))
    start = time.perf_counter()
    trainer.train(tf.constant(2 * args.batches))
    step = (time.perf_counter() - start) / (2 * args.batches)
    rows = np.mean([len(np.unique(trainer.rows_read(batch)[0][1])) for batch in kept])
    return {
        "pairs per second": args.batch_size / step,
        "text": _per_batch(batches(cached=False), args.batches),
        "input": _per_batch(batches(cached=True), args.batches),
        "forward": through,
        "loss and gradients": differentiated - through,
        "update": step - differentiated,
        "memory": 3 * rows * 4 * args.hidden_size / _bytes_per_second(),
    }


def _per_batch(dataset, count: int) -> float:
    """Returns seconds per batch, after a first window of them."""
    from labse_tf.data.pairs import BATCHES_PER_WINDOW

    batches = iter(dataset)
    for _ in range(BATCHES_PER_WINDOW):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    return (time.perf_counter() - start) / count


def _bytes_per_second() -> float:
    """Returns the bytes read, or written, per second, by a copy on one core, the best of five."""
    source = np.ones(_COPIED, np.uint8)
    target = np.empty_like(source)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        times.append(time.perf_counter() - start)
    return 2 * _COPIED / min(times)


if __name__ == "__main__":
    main()
