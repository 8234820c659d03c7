"""Plots pre-training runs over the time of their steps, and prints their last measurements.

    python -m benchmarks.training.pretraining_curves NAME=RUN_DIR ... --out PLOT.png

Left: loss of the training batches; right: accuracy of MLM and TLM on held-out text. Prints each
run's last measurement as a Markdown table, and both accuracies by language.
"""

from __future__ import annotations

import argparse

import matplotlib.pyplot as plt
import numpy as np

from labse_tf.training.runs.run_dir import open_existing

_SMOOTHED_LINES = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN_DIR")
    parser.add_argument("--out", required=True, metavar="PLOT.png")
    args = parser.parse_args()
    runs = {}
    for run in args.runs:
        name, _, path = run.partition("=")
        runs[name] = _with_minutes(open_existing(path).read_metrics())
    _draw(runs, args.out)
    print("| run | minutes | steps | MLM loss | MLM accuracy | TLM loss | TLM accuracy |")
    print("|---|---|---|---|---|---|---|")
    for name, lines in runs.items():
        _print_end(name, lines)
    for name, lines in runs.items():
        _print_languages(name, lines)


def _with_minutes(lines: list[dict]) -> list[dict]:
    """Adds to each line the time that all steps up to it took."""
    minutes, position = 0.0, (None, 0)
    for line in lines:
        stage, step = position
        done = line["step"] - (step if stage == line.get("stage") else 0)
        if "held_out" not in line:
            minutes += done / line["steps_per_second"] / 60
            position = line.get("stage"), line["step"]
        line["minutes"] = minutes
    return lines


def _draw(runs: dict[str, list[dict]], out: str) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    for index, (name, lines) in enumerate(runs.items()):
        color = f"C{index}"
        steps = [line for line in lines if "held_out" not in line]
        losses = np.convolve(
            [line["loss"] for line in steps], np.ones(_SMOOTHED_LINES) / _SMOOTHED_LINES, "valid"
        )
        times = [line["minutes"] for line in steps[_SMOOTHED_LINES - 1 :]]
        left.plot(times, losses, color=color, label=name)
        measured = [line for line in lines if "held_out" in line]
        for task, style in (("mlm", "--"), ("tlm", "-")):
            right.plot(
                [line["minutes"] for line in measured],
                [100 * line["held_out"][task]["accuracy"] for line in measured],
                style,
                color=color,
                label=f"{name}, {task.upper()}",
            )
    left.set(xlabel="minutes", ylabel="training loss, nats a token")
    right.set(xlabel="minutes", ylabel="held-out accuracy, %")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def _print_end(name: str, lines: list[dict]) -> None:
    last = [line for line in lines if "held_out" in line][-1]
    steps = sum(
        max(line["step"] for line in lines if line.get("stage") == stage)
        for stage in {line.get("stage") for line in lines}
    )
    cells = [f"{last['minutes']:.1f}", str(steps)]
    for task in ("mlm", "tlm"):
        measured = last["held_out"][task]
        cells += [f"{measured['loss']:.3f}", f"{100 * measured['accuracy']:.1f} %"]
    print(f"| {name} | {' | '.join(cells)} |")


def _print_languages(name: str, lines: list[dict]) -> None:
    last = [line for line in lines if "held_out" in line][-1]["held_out"]
    print(f"\n| {name} | MLM accuracy | TLM accuracy | masked tokens |\n|---|---|---|---|")
    for language, alone in last["mlm"]["by_language"].items():
        with_source = last["tlm"]["by_language"][language]
        print(
            f"| {language} | {100 * alone['accuracy']:.1f} % "
            f"| {100 * with_source['accuracy']:.1f} % | {alone['tokens']} |"
        )


if __name__ == "__main__":
    main()
