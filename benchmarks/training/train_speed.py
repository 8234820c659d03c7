"""Steps per second of dual-encoder training: ours and sentence-transformers', on the same pairs.

    python -m benchmarks.training.train_speed PAIRS VOCAB --peer PEER/bin/python [--rows 501153] \\
        [--turns 3]
    python -m benchmarks.training.train_speed PAIRS VOCAB --peer PEER/bin/python --layers 0 \\
        --hidden-size 256 --batch-size 2048 --steps 100 [--set encoder.subwords=[]]

PAIRS is a folder of `<lang>.tsv`, VOCAB a vocab.txt of at most --rows tokens, PEER the environment
of benchmarks/peers/requirements-sentence-transformers.txt. Both train the same encoder (BERT base
except for the rows of its embedding table) in float32 with AdamW and in-batch negatives,
alternately, and report the steps per second after the first ones. With --layers 0, it is
configs/static.yaml against StaticEmbedding, with one row a token in both. --set is for ours. Prints
the machine, each turn and the ratio of the medians. Ends with an error if the peer's tokens differ,
or its loss does not fall.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import machine, make_parser

_PEER = "benchmarks.peers.train_sentence_transformers"


def main() -> None:
    sizes = {"rows": 501_153, "layers": 12, "hidden_size": 768, "batch_size": 32}
    parser = make_parser(__doc__, "pairs", "vocab", **sizes, steps=25, turns=3, set=[])
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    args = parser.parse_args()
    print(machine.describe(), flush=True)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.json")
        tokens = ["benchmarks.peers.tokens", args.pairs, args.vocab, "--out", sample]
        _run([sys.executable, "-m", *tokens])
        for turn in range(args.turns):
            # The peer first: if it does not do the same work, the rest would be a waste of time.
            theirs.append(_theirs(args, sample))
            ours.append(_ours(args))
            print(f"turn {turn + 1}: {ours[-1]:.3f} and {theirs[-1]:.3f} steps/s", flush=True)
    print(f"{median(ours):.3f} / {median(theirs):.3f} = {median(ours) / median(theirs):.2f}")


def _ours(args: argparse.Namespace) -> float:
    settings = {
        "tokenizer.vocab_file": args.vocab,
        "encoder.vocab_size": args.rows if args.layers else 0,
        "encoder.hidden_size": args.hidden_size,
        "encoder.num_layers": args.layers,
        "train.bitext": f"[{args.pairs}]",
        "train.batch_size": args.batch_size,
        "train.bucket_lengths": "[8,10,12,14,16,20,24,32,48,64]",
        "train.steps": 2 * args.steps,
        "train.optimizer.warmup_steps": 0.1,
        "compute.precision": "float32",
        # The end of such a loop, where all rows catch up on missed steps, is also timed.
        "train.loop.log_interval": args.steps,
    }
    with tempfile.TemporaryDirectory() as folder:
        config = "configs/labse_base.yaml" if args.layers else "configs/static.yaml"
        command = [sys.executable, "-m", "labse_tf.cli.main", "train", config]
        for setting in [*(f"{key}={value}" for key, value in settings.items()), *args.set]:
            command += ["--set", setting]
        run_dir = Path(folder) / "run"
        _run([*command, "--run-dir", run_dir])
        lines = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines()
        return json.loads(lines[-1])["steps_per_second"]


def _theirs(args: argparse.Namespace, sample: Path) -> float:
    sizes = ["--layers", args.layers, "--hidden-size", args.hidden_size, "--learning-rate"]
    if args.layers:
        sizes += [1e-4, "--heads", 12, "--intermediate-size", 3072, "--rows", args.rows]
    else:
        sizes += [0.2]  # As sentence-transformers documents for static embeddings.
    steps = ["--batch-size", args.batch_size, "--steps", 2 * args.steps]
    steps += ["--checkpoint-steps", args.steps]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peer"
        command = [args.peer, "-m", _PEER, args.pairs, args.vocab, "--sample", sample]
        _run([*command, *sizes, *steps, "--out", out])
        result = json.loads((out / "result.json").read_text("utf-8"))
    half, end = (score["minutes"] for score in result["scores"])
    return args.steps / (60 * (end - half))


def _run(command: list[object]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-3000:]}")


if __name__ == "__main__":
    main()
