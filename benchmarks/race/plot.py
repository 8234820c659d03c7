"""Draws accuracy over minutes, and prints the table, of what `benchmarks.race.run` has written.

python -m benchmarks.race.plot RACE [--out race.png]
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

from benchmarks import make_parser

_PANELS = {
    ("tatoeba", "all"): "Tatoeba, all languages",
    ("tatoeba", "seen"): "Tatoeba, 1,000 training pairs",
    ("news", "all"): "News (NTREX-128), all languages",
    ("news", "seen"): "News, 1,000 training pairs",
}


def read(folder: Path) -> dict[tuple[str, float], list[dict]]:
    """Returns the results by contestant and minutes, one a seed."""
    found = defaultdict(list)
    for path in sorted(folder.glob("*/result.json")):
        one = json.loads(path.read_text("utf-8"))
        found[one["name"], one["minutes"]].append(one)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1])))


def table(results: dict[tuple[str, float], list[dict]]) -> str:
    """Returns Markdown: means over seeds, %, with the lowest and the highest if there are more."""
    rows = ["| contestant | minutes | " + " | ".join(_PANELS.values()) + " |"]
    rows.append("|---" * (2 + len(_PANELS)) + "|")
    for (name, minutes), runs in results.items():
        cells = [_cell([run["scores"][test][kind] for run in runs]) for test, kind in _PANELS]
        rows.append(f"| {name} | {minutes:g} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def plot(results: dict[tuple[str, float], list[dict]], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(_PANELS), figsize=(16, 4.5), layout="constrained")
    names = list(dict.fromkeys(name for name, _ in results))
    for axis, ((test, kind), title) in zip(axes, _PANELS.items(), strict=True):
        for number, name in enumerate(names):
            points = [
                (minutes, mean(run["scores"][test][kind] for run in runs))
                for (one, minutes), runs in results.items()
                if one == name
            ]
            if points[0][0] == 0:  # Nothing is trained.
                axis.axhline(points[0][1], color=f"C{number}", linestyle=":", label=name)
            else:
                axis.plot(*zip(*points, strict=True), "o-", color=f"C{number}", label=name)
        axis.set(title=title, xlabel="minutes of training", ylabel="accuracy, %")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.savefig(out, dpi=110)


def main() -> None:
    args = make_parser(__doc__, "race", out=Path).parse_args()
    results = read(args.race)
    print(table(results))
    if args.out:
        plot(results, args.out)


if __name__ == "__main__":
    main()
