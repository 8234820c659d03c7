"""Tables and plots of the ablations: what `benchmarks.training.ablations` has finished so far.

    python -m benchmarks.training.ablations_report DIR [--plot PLOT.png]

Prints Markdown: retrieval accuracy in %, the mean over both directions and over languages, on each
test, for each seed and on average. PLOT.png has the curves of margin, batch size and steps.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks import make_parser
from benchmarks.training.ablations import RESULTS, TITLES, Variant, variants
from labse_tf.training.runs.run_dir import open_existing


def main() -> None:
    args = make_parser(__doc__, "runs", plot=str).parse_args()
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
    """Draws the groups that have results, each in a panel of its own; a point is no curve."""
    panels = {
        name: curves
        for name, curves in _curves(runs, seeds).items()
        if any(len(points) > 1 for points in curves.values())
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(4.3 * len(panels), 4), squeeze=False)
    for place, (name, curves) in zip(axes[0], panels.items(), strict=True):
        for label, points in curves.items():
            place.plot(*zip(*points, strict=True), "o-", label=label)
        place.set(xlabel=name, ylabel="retrieval accuracy, %")
        if name in ("batch size", "steps, on Tatoeba"):
            place.set_xscale("log", base=2)
            place.xaxis.set_major_formatter("{x:.0f}")
        place.grid(alpha=0.3)
        place.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def _curves(runs: Path, seeds: list[int]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Returns name of a panel -> label of a curve -> points; without those that have no result."""
    panels = {"margin": {}, "batch size": {}, "steps, on Tatoeba": {}, "steps of one run": {}}
    groups = {"margin": "margin", "batch": "batch size"}
    for row in variants():
        if name := groups.get(row.group):
            for test in ("tatoeba", "libreoffice"):
                if scores := _scores(runs, row, seeds, test):
                    points = panels[name].setdefault(test, [])
                    points.append((float(row.label), float(np.mean(scores))))
        elif row.group == "steps" and (scores := _scores(runs, row, seeds, "tatoeba")):
            steps, label = row.label.split(", ")
            points = panels["steps, on Tatoeba"].setdefault(label, [])
            points.append((float(steps), float(np.mean(scores))))
        elif row.group == "pretraining" and (points := _held_out(runs, row, seeds)):
            panels["steps of one run"][row.label] = points
    return panels


def _held_out(runs: Path, variant: Variant, seeds: list[int]) -> list[tuple[float, float]]:
    by_step: dict[int, list[float]] = {}
    for seed in seeds:
        path = runs / "runs" / variant.name(seed)
        if path.exists():
            for line in open_existing(path).read_metrics():
                if "held_out" in line:
                    accuracy = line["held_out"]["retrieval"]["accuracy"]
                    by_step.setdefault(line["step"], []).append(100 * accuracy)
    return [(float(step), float(np.mean(scores))) for step, scores in by_step.items()]


if __name__ == "__main__":
    main()
