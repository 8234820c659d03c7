"""Tables and plots of the ablations: what `benchmarks.training.ablations` has finished so far.

    python -m benchmarks.training.ablations_report DIR [--plot PLOT.png]

Prints Markdown: retrieval accuracy in %, the mean over both directions and over languages, on each
test, for each seed and on average. PLOT.png has the curves of margin, batch size and pre-training.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.training.ablations import RESULTS, TITLES, Variant, variants
from labse_tf.training.runs.run_dir import open_existing


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, metavar="DIR")
    parser.add_argument("--plot", metavar="PLOT.png")
    args = parser.parse_args()
    seeds = sorted({int(path.stem.rsplit("-", 1)[1]) for path in args.runs.glob(f"{RESULTS}/*")})
    for group, title in TITLES.items():
        rows = [variant for variant in variants() if variant.group == group]
        _print_table(title, rows, args.runs, seeds)
    if args.plot:
        _draw(args.runs, seeds, args.plot)


def _scores(runs: Path, variant: Variant, seeds: list[int], test: str) -> list[float]:
    paths = [runs / RESULTS / f"{variant.name(seed)}.json" for seed in seeds]
    results = [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]
    return [100 * result[test]["accuracy"] for result in results]


def _print_table(title: str, rows: list[Variant], runs: Path, seeds: list[int]) -> None:
    print(f"\n## {title}\n")
    print("| | Tatoeba | by seed | LibreOffice | by seed |\n|---|---|---|---|---|")
    for variant in rows:
        cells = [variant.label]
        for test in ("tatoeba", "libreoffice"):
            scores = _scores(runs, variant, seeds, test)
            cells.append(f"{np.mean(scores):.1f}" if scores else "")
            cells.append(", ".join(f"{score:.1f}" for score in scores))
        print(f"| {' | '.join(cells)} |")


def _draw(runs: Path, seeds: list[int], out: str) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    for place, group in zip(axes, ("margin", "batch"), strict=False):
        rows = [variant for variant in variants() if variant.group == group]
        for test in ("tatoeba", "libreoffice"):
            points = [
                (float(row.label), np.mean(scores))
                for row in rows
                if (scores := _scores(runs, row, seeds, test))
            ]
            place.plot(*zip(*points, strict=True), "o-", label=test)
        place.set(xlabel=group, ylabel="retrieval accuracy, %")
    axes[1].set_xscale("log", base=2)
    for variant in variants():
        if variant.group == "pretraining":
            steps, scores = _curve(runs, variant, seeds)
            axes[2].plot(steps, scores, "o-", label=variant.label)
    axes[2].set(xlabel="steps", ylabel="retrieval accuracy on Tatoeba, %")
    for place in axes:
        place.grid(alpha=0.3)
        place.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def _curve(runs: Path, variant: Variant, seeds: list[int]) -> tuple[list[int], list[float]]:
    by_step: dict[int, list[float]] = {}
    for seed in seeds:
        path = runs / "runs" / variant.name(seed)
        if path.exists():
            for line in open_existing(path).read_metrics():
                if "held_out" in line:
                    accuracy = line["held_out"]["retrieval"]["accuracy"]
                    by_step.setdefault(line["step"], []).append(100 * accuracy)
    return list(by_step), [float(np.mean(scores)) for scores in by_step.values()]


if __name__ == "__main__":
    main()
