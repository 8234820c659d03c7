"""Weak scaling: one process with its own batch, and two with the same number of pairs each.

    python -m benchmarks.training.weak_scaling PAIRS VOCAB [--local-batch 128] [--turns 3]

Each process is pinned to a core. Two train as workers of MultiWorkerMirroredStrategy with the whole
global batch as negatives. Prints alternate measurements of steps per second of both, and the ratio
of the medians: 1 would be perfect scaling.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import machine

_CONFIG = Path(__file__).with_suffix(".yaml")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", metavar="PAIRS")
    parser.add_argument("vocab", metavar="VOCAB")
    parser.add_argument("--local-batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40, help="that are timed")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    print(machine.describe(), flush=True)
    one, two = [], []
    for turn in range(args.turns):
        one.append(_steps_per_second(args, workers=1))
        two.append(_steps_per_second(args, workers=2))
        print(f"turn {turn + 1}: {one[-1]:.3f} and {two[-1]:.3f} steps/s", flush=True)
    print(f"{median(two):.3f} / {median(one):.3f} = {median(two) / median(one):.2f}")


def _steps_per_second(args: argparse.Namespace, *, workers: int) -> float:
    settings = {
        "tokenizer.vocab_file": args.vocab,
        "train.bitext": f"[{args.pairs}]",
        "train.batch_size": workers * args.local_batch,
        # One length, so that all steps have the same amount of work.
        "train.bucket_lengths": "[16]",
        "train.steps": 2 * args.steps,
        "train.loop.log_interval": args.steps,
    }
    cores = sorted(os.sched_getaffinity(0))
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(workers)]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        command = [sys.executable, "-m", "labse_tf.cli.main", "train", str(_CONFIG)]
        command += ["--run-dir", str(run_dir)]
        command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        environments = [{}]
        if workers > 1:
            command += ["--strategy", "multi_worker"]
            environments = [_cluster(addresses, index) for index in range(workers)]
        processes = [
            subprocess.Popen(
                ["taskset", "-c", str(cores[index]), *command],
                env={**os.environ, **environment},
                stderr=subprocess.PIPE,
                text=True,
            )
            for index, environment in enumerate(environments)
        ]
        for process in processes:
            _, errors = process.communicate()
            if process.returncode:
                raise SystemExit(errors[-3000:])
        lines = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines()
        return json.loads(lines[-1])["steps_per_second"]


def _cluster(addresses: list[str], index: int) -> dict[str, str]:
    task = {"type": "worker", "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})}


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


if __name__ == "__main__":
    main()
