"""Target tokens a second of `labse train-laser`'s step, and of PyTorch's on the same batches.

    python -m benchmarks.training.translation_speed CONFIG PAIRS --vocab VOCAB \\
        --peer PEER/bin/python [--set KEY=VALUE ...] [--steps 20] [--turns 3]

Sizes, tokens of a batch and targets are those of CONFIG. The batches are real text, made once by
our input pipeline and read by both, so that neither tokenises. The peer packs its input, reads
sentence vector and language at every step of the decoder, and uses Adam and the whole softmax; ours
has the softmax of CONFIG. In turns, each in a process of its own; prints medians and their ratio.
Ends with an error if both do not begin near the same loss, or if a loss does not fall.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import machine


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("pairs", metavar="PAIRS")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--peer", metavar="PYTHON", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder:
        print(json.dumps(_time_ours(args)))
        return
    print(machine.describe())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = _make(args, folder)
        print(json.dumps(sizes))
        ours = [sys.executable, "-m", "benchmarks.training.translation_speed", *sys.argv[1:]]
        ours += ["--folder", name]
        peer = [args.peer, "-m", "benchmarks.peers.lstm_translation"]
        peer += [str(folder / "batches.npz"), str(folder / "sizes.json")]
        found = {"ours": [], "PyTorch": []}
        for _ in range(args.turns):
            for who, command in (("ours", ours), ("PyTorch", peer)):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{who}:\n{done.stderr[-3000:]}")
                found[who].append(json.loads(done.stdout.splitlines()[-1]))
    _check(found, sizes["vocab_size"])
    rates = {
        who: statistics.median(one["target_tokens"] / one["seconds"] for one in runs)
        for who, runs in found.items()
    }
    for who, runs in found.items():
        falls = f"loss {runs[0]['first']:.3f} to {runs[0]['last']:.3f}"
        print(f"{who}: {rates[who]:,.0f} target tokens a second, {falls}")
    print(f"ratio: {rates['ours'] / rates['PyTorch']:.2f}")


def _load(args: argparse.Namespace):
    from labse_tf.config import load_config
    from labse_tf.tokenization.open import open_tokenizer

    overrides = [f"tokenizer.vocab_file={args.vocab}", f"laser.bitext=[{args.pairs}]", *args.set]
    config = load_config(args.config, overrides)
    tokenizer = open_tokenizer(args.vocab, max_bytes_per_word=config.tokenizer.max_bytes_per_word)
    config.encoder.vocab_size = len(tokenizer.tokens)
    return config, tokenizer


def _make(args: argparse.Namespace, folder: Path) -> dict:
    """Writes the batches and the sizes; returns these."""
    from labse_tf.systems.laser.batches import find_directions, laser_batches

    config, tokenizer = _load(args)
    laser, encoder = config.laser, config.encoder
    corpora = (laser.targets, config.languages)
    directions = find_directions(laser.bitext, laser.target_bitext, *corpora, key="laser.bitext")
    batches = laser_batches(laser, tokenizer, directions, seed=1)
    arrays = {
        f"{number}/{name}": value
        for number, batch in enumerate(batches.take(args.steps).as_numpy_iterator())
        for name, value in batch.items()
    }
    np.savez(folder / "batches.npz", **arrays)
    sizes = {
        "vocab_size": encoder.vocab_size,
        "embedding_size": encoder.token_size,
        "hidden_size": encoder.hidden_size,
        "num_layers": encoder.num_layers,
        "decoder_size": laser.decoder_size,
        "language_size": laser.language_size,
        "output_size": laser.output_size,
        "languages": len(laser.targets),
        "initializer_range": laser.initializer_range,
        "end_token": tokenizer.special_tokens["end_of_segment_id"],
    }
    (folder / "sizes.json").write_text(json.dumps(sizes), "utf-8")
    return sizes


def _time_ours(args: argparse.Namespace) -> dict[str, float]:
    import tensorflow as tf

    from labse_tf.model.encoder import build_encoder
    from labse_tf.systems.laser.batches import LASER_FEATURES
    from labse_tf.systems.laser.objective import Translation
    from labse_tf.systems.laser.train import build_decoder
    from labse_tf.training.fit import Trainer
    from labse_tf.training.optimizer import build_optimizer

    config, tokenizer = _load(args)
    arrays = np.load(args.folder / "batches.npz", allow_pickle=False)
    batches = [
        {name: arrays[f"{number}/{name}"] for name in LASER_FEATURES}
        for number in range(args.steps)
    ]
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        encoder = build_encoder(config.encoder, compute=config.compute, replayable=True)
        decoder = build_decoder(config, encoder)
        optimizer = build_optimizer(config.laser.optimizer, steps=10 * args.steps)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([batches[0], *batches]), output_signature=LASER_FEATURES
    )
    objective = Translation(
        encoder=encoder,
        decoder=decoder,
        end_token=tokenizer.special_tokens["end_of_segment_id"],
        samples=config.laser.sampled_softmax,
    )
    trainer = Trainer(
        objective,
        strategy=strategy,
        optimizer=optimizer,
        clip_norm=config.laser.optimizer.clip_norm,
        dataset=strategy.experimental_distribute_dataset(dataset),
    )
    first = trainer.train(tf.constant(1))["loss"]  # For tracing and for first touching the memory.
    start = time.perf_counter()
    mean = trainer.train(tf.constant(args.steps))["loss"]
    seconds = time.perf_counter() - start
    tokens = sum(int((batch["targets"] != 0).sum()) for batch in batches)
    return {"seconds": seconds, "first": float(first), "last": float(mean), "target_tokens": tokens}


def _check(found: dict[str, list[dict]], vocab_size: int) -> None:
    """Ours tells the mean loss of the timed steps as the last, since its loop runs in the graph."""
    tokens = {one["target_tokens"] for runs in found.values() for one in runs}
    firsts = [one["first"] for runs in found.values() for one in runs]
    falls = all(one["last"] < one["first"] for runs in found.values() for one in runs)
    # Small weights make all tokens nearly equally probable.
    near = all(abs(first - math.log(vocab_size)) < 0.5 for first in firsts)
    if len(tokens) != 1 or not falls or not near:
        sys.exit(f"not the same work: {json.dumps(found)}")


if __name__ == "__main__":
    main()
