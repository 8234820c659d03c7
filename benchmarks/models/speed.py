"""Sentences per second of model dirs, one against the other, as `labse_tf.load` embeds.

    python -m benchmarks.models.speed TEXTS MODEL_DIR MODEL_DIR [--sentences 20000] [--turns 3]

TEXTS has a sentence per line. Tokenisation is timed, loading and a first window are not. Prints
Markdown: the median of the turns, which alternate, and its ratio to the first model's.
"""

from __future__ import annotations

import argparse
import itertools
import time
from statistics import median

import labse_tf
from benchmarks import machine
from labse_tf.files.textio import read_lines

_WARM_UP = 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", metavar="TEXTS")
    parser.add_argument("models", nargs="+", metavar="MODEL_DIR")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    texts = [text for _, text in itertools.islice(read_lines(args.texts), args.sentences)]
    models = {name: labse_tf.load(name) for name in args.models}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for model in models.values():
        model.encode(texts[:_WARM_UP])
    for _ in range(args.turns):
        for name, model in models.items():
            start = time.perf_counter()
            model.encode(texts)
            seconds[name].append(time.perf_counter() - start)
    print(f"{machine.describe()}; {len(texts)} sentences, medians of {args.turns} turns\n")
    print("| model | sentences/s | ratio |\n|---|---|---|")
    rates = {name: len(texts) / median(times) for name, times in seconds.items()}
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {rate / rates[args.models[0]]:.1f} |")


if __name__ == "__main__":
    main()
