"""Pairs that share the sequences of TLM, against one pair a sequence, at equal text.

    python -m benchmarks.training.packing CONFIG BITEXT HELD_OUT --vocab VOCAB --out DIR \\
        [--set KEY=VALUE ...] [--steps 2000] [--seeds 1]

Trains CONFIG by TLM alone with `pretrain.pack_pairs` and without, two runs in parallel, one core
each. Without it, batches have the sequences of CONFIG; with it, so many fewer that a step has as
many tokens. So both runs see equally much text in equally many steps, and the packed one fewer
rows. Prints how much of the rows is text, the tokens a second of it, and accuracy on HELD_OUT,
whose pairs stand one in a sequence. The same command resumes.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import machine, timed
from labse_tf.config import load_config

_TRIAL_STEPS = 40


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("bitext", type=Path, metavar="BITEXT")
    parser.add_argument("held_out", type=Path, metavar="HELD_OUT")
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    pretrain = load_config(args.config, args.set).pretrain
    length, rows = pretrain.sequence_length, pretrain.batch_size
    single, packed = (_tokens_of(args, packed, rows) for packed in (False, True))
    packed_rows = round(rows * single / packed)
    arms = {"one pair a sequence": (False, rows), "packed": (True, packed_rows)}
    cores = timed.Cores()

    def run(arm: str, seed: int) -> list[dict]:
        packed, batch_size = arms[arm]
        run_dir = args.out / f"{'packed' if packed else 'single'}_{seed}"
        with cores.one() as core:
            return _train(args, run_dir, packed, batch_size, args.steps, seed, core)

    jobs = [(arm, seed) for seed in range(1, args.seeds + 1) for arm in arms]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(lambda job: run(*job), jobs), strict=True))
    print(machine.describe())
    print("| | sequences a step | text, % | tokens of text a second | held-out TLM accuracy, % |")
    print("|---|---|---|---|---|")
    for arm, (_, batch_size) in arms.items():
        runs = [found[arm, seed] for seed in range(1, args.seeds + 1)]
        seen = np.mean([_median(lines, "tokens") for lines in runs])
        rate = np.mean([_median(lines, "steps_per_second") for lines in runs])
        filled = 100 * seen / batch_size / length
        reached = ", ".join(f"{100 * _held_out(lines):.1f}" for lines in runs)
        print(f"| {arm} | {batch_size} | {filled:.1f} | {seen * rate:,.0f} | {reached} |")


def _tokens_of(args: argparse.Namespace, packed: bool, batch_size: int) -> float:
    """Returns the tokens of a step, from a short trial that is kept."""
    trial = args.out / f"trial_{'packed' if packed else 'single'}"
    return _median(_train(args, trial, packed, batch_size, _TRIAL_STEPS, 0, None), "tokens")


def _train(
    args: argparse.Namespace,
    run_dir: Path,
    packed: bool,
    batch_size: int,
    steps: int,
    seed: int,
    core: int | None,
) -> list[dict]:
    """Returns the metrics of a run, which is finished first."""
    settings = {
        "tokenizer.vocab_file": args.vocab,
        "pretrain.bitext": f"[{args.bitext}]",
        "pretrain.held_out": f"[{args.held_out}]",
        "pretrain.held_out_interval": steps,
        "pretrain.tlm_fraction": 1,
        "pretrain.pack_pairs": packed,
        "pretrain.batch_size": batch_size,
        "pretrain.stage_steps": f"[{steps}]",
        "pretrain.loop.log_interval": max(1, steps // 20),
        "seed": seed,
    }
    sets = [*args.set, *(f"{key}={value}" for key, value in settings.items())]
    words = [word for one in sets for word in ("--set", one)]
    log = args.out / f"{run_dir.name}.log"
    timed.labse("pretrain", args.config, "--run-dir", run_dir, *words, core=core, log=log)
    lines = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _median(lines: list[dict], name: str) -> float:
    """Returns the median over the lines of the log, so that the first one's compilation is out."""
    return float(np.median([line[name] for line in lines if name in line]))


def _held_out(lines: list[dict]) -> float:
    return next(
        line["held_out"]["tlm"]["accuracy"] for line in reversed(lines) if "held_out" in line
    )


if __name__ == "__main__":
    main()
