"""The cost of a training step with a small vocabulary and with the paper's.

    python -m benchmarks.training.step_cost [--layers 12] [--batch-size 16] [--length 32] [--dense]
    python -m benchmarks.training.step_cost --mlm [--sampled-softmax 8192] --batch-size 4 \\
        --length 128
    python -m benchmarks.training.step_cost --cmlm
    python -m benchmarks.training.step_cost --mlm --sizes 30000 --batch-size 4 --length 512 \\
        [--rematerialize] [--chunk-size 1]

The step is the dual encoder's, or that of pre-training: with --mlm 20 % of the tokens are masked,
with --cmlm 31 %, beside 15 slots made of another sentence of the same length. Runs one process per
vocabulary size, with an encoder of the paper's width (768); prints the mean seconds per step, the
peak memory, what `labse plan` says of it, and the ratio of the times. Token ids follow Zipf's law,
as in text. --dense updates the whole embedding table, as AdamW does by default.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks import machine, make_parser

SIZES = (30_000, 501_153)
_SLOTS, _CMLM_MASKS = 15, 80  # The paper's, of 256 tokens.


def main() -> None:
    numbers = {"layers": 12, "batch_size": 16, "length": 32, "steps": 8}
    numbers |= {"chunk_size": 0, "sampled_softmax": 0}
    flags = dict.fromkeys(("rematerialize", "dense", "mlm", "cmlm", "bfloat16"), False)
    parser = make_parser(__doc__, **numbers, **flags)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="of the vocabulary")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.size:
        print(json.dumps(_measure(args)))
        return
    print(machine.describe())
    seconds = []
    for size in args.sizes:
        command = [sys.executable, "-m", "benchmarks.training.step_cost", *sys.argv[1:]]
        command += ["--size", str(size)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = json.loads(output.splitlines()[-1])
        seconds.append(found["seconds"])
        print(
            f"{size} pieces: {found['seconds']:.2f} s a step, {found['gigabytes']:.2f} GB, planned "
            f"{found['planned']:.2f}; {found['end']:.2f} s every `loop.log_interval` steps"
        )
    if len(seconds) > 1:
        print(f"ratio: {seconds[-1] / seconds[0]:.2f}")


def _measure(args: argparse.Namespace) -> dict[str, float]:
    import tensorflow as tf

    from labse_tf.config import ComputeConfig, EncoderConfig, OptimizerConfig, TrainConfig
    from labse_tf.model.encoder import build_encoder
    from labse_tf.model.mlm_head import build_mlm_head, build_slots
    from labse_tf.training.fit import Trainer
    from labse_tf.training.objectives import DualEncoder, MaskedTokens
    from labse_tf.training.optimizer import build_optimizer

    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    pooling = "mean" if args.cmlm else "cls"
    config = EncoderConfig(vocab_size=args.size, num_layers=args.layers, pooling=pooling)
    compute = ComputeConfig(
        precision="bfloat16" if args.bfloat16 else "float32", rematerialize=args.rematerialize
    )
    with strategy.scope():
        encoder = build_encoder(config, compute=compute, replayable=True)
        masked = args.mlm or args.cmlm
        head = build_mlm_head(config, encoder, compute=compute) if masked else None
        slots = build_slots(_SLOTS if args.cmlm else 0, config, compute=compute)
        optimizer = build_optimizer(OptimizerConfig(), steps=1000)
    if masked:
        softmax = {"samples": args.sampled_softmax, "chunk_size": args.chunk_size}
        objective = MaskedTokens(encoder, head, slots, **softmax)
    else:
        objective = DualEncoder(encoder, TrainConfig(chunk_size=args.chunk_size))
    trainer = Trainer(
        objective,
        strategy=strategy,
        optimizer=optimizer,
        clip_norm=1.0,
        dataset=strategy.experimental_distribute_dataset(_batches(args)),
        lazy_embeddings=not args.dense,
    )
    trainer.train(tf.constant(2))  # For tracing and for first touching the memory.
    # The end of a loop has its own work, such as catching up table rows on missed steps. Timing
    # short loops and one long loop separates the two.
    ends = [_seconds(trainer, 1) for _ in range(3)]
    step = (_seconds(trainer, 1 + args.steps) - min(ends)) / args.steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "seconds": step,
        "end": max(0.0, min(ends) - step),
        "gigabytes": peak,
        "planned": _planned(args, config, compute),
    }


def _planned(args: argparse.Namespace, encoder, compute) -> float:
    """Returns the gigabytes of `labse plan` for the same step."""
    from labse_tf.config import CMLM, MLM, OptimizerConfig, PretrainConfig, TrainConfig, TrainRun
    from labse_tf.config.devices import find_device
    from labse_tf.config.plan import PRETRAIN, TRAIN, find_phases, memory_of

    optimizer = OptimizerConfig(lazy_embeddings=not args.dense)
    sizes = {"batch_size": args.batch_size, "chunk_size": args.chunk_size, "optimizer": optimizer}
    masked = PretrainConfig(
        objective=CMLM if args.cmlm else MLM,
        sequence_length=args.length,
        mask_fraction=_CMLM_MASKS / 256 if args.cmlm else 0.2,
        max_predictions=_masks(args),
        sampled_softmax=args.sampled_softmax,
        stage_steps=[1],
        **sizes,
    )
    pairs = TrainConfig(bucket_lengths=[args.length], **sizes)
    config = TrainRun(encoder=encoder, compute=compute, pretrain=masked, train=pairs)
    section = PRETRAIN if args.mlm or args.cmlm else TRAIN
    [phase] = find_phases(config, replicas=1, on_tpu=False, sections=[section])
    return memory_of(phase, find_device("cpu"), compute.precision).total / 1e9


def _masks(args: argparse.Namespace) -> int:
    return args.length * _CMLM_MASKS // 256 if args.cmlm else args.length // 5


def _seconds(trainer, steps: int) -> float:
    import tensorflow as tf

    start = time.perf_counter()
    trainer.train(tf.constant(steps))
    return time.perf_counter() - start


def _batches(args: argparse.Namespace):
    import tensorflow as tf

    generator = np.random.default_rng(0)

    def draw(length):
        ranks = generator.zipf(1.2, size=(args.batch_size, length)) % (args.size - 104)
        return (104 + ranks).astype(np.int32)

    def side():
        ids = draw(args.length)
        return {"input_word_ids": ids, "input_mask": 0 * ids + 1, "input_type_ids": 0 * ids}

    def masked():
        count = _masks(args)
        positions = np.tile(np.arange(count, dtype=np.int32), (args.batch_size, 1))
        weights = np.ones(positions.shape, np.float32)
        asked = {"masked_positions": positions, "masked_ids": draw(count)}
        found = {**side(), **asked, "masked_weights": weights}
        return {**found, "neighbour": side()} if args.cmlm else found

    def pairs():
        keys = np.arange(2 * args.batch_size, dtype=np.int32).reshape(-1, 2)
        return {"source": side(), "target": side(), "keys": keys}

    batches = [masked() if args.mlm or args.cmlm else pairs() for _ in range(4)]
    stacked = tf.nest.map_structure(lambda *parts: np.stack(parts), *batches)
    return tf.data.Dataset.from_tensor_slices(stacked).repeat()


if __name__ == "__main__":
    main()
