"""Forty minutes of training on everyday sentences: the data of the race, and its score.

    python -m benchmarks.training.tatoeba_race prepare PAIRS TEST --out DIR
    labse vocab build DIR/train --vocab-size 60000 --out VOCAB
    python -m benchmarks.training.tatoeba_race train DIR --vocab VOCAB --out RUNS
    python -m benchmarks.training.tatoeba_race score RUNS/model TEST --counts DIR

PAIRS holds `<iso 639-3>.tsv[.xz]`, English first, TEST the files of LASER's Tatoeba test.
`prepare` checks that they share no sentence, and writes DIR/train for `labse train` and DIR/dev for
tuning: a tenth of each language's pairs, 300 at most, in files like the test's; no sentence of them
is in the language's training pairs. `train` runs the stages of
benchmarks/training/tatoeba_race.yaml, with progressive stacking, and prints the minutes. `score`
prints each language's accuracy of retrieving the English translation (xx to en), and two means:
over all languages, and over those with at least 1,000 training pairs in `--counts DIR`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from benchmarks import machine
from labse_tf.files.textio import read_lines, read_pairs
from labse_tf.languages import LANGUAGES, find_code

# Code for the smallest languages that are not among the paper's 109; each of the other such
# languages gets a code that no language here has. Codes affect only vocabulary and sampling.
_STAND_IN = "en"
_DEV_PAIRS = 300
_LEAST_WITH_DEV = 200
_LEAST_TRAINING_PAIRS = 1000
_COUNTS = "counts.json"
_CONFIG = Path(__file__).with_suffix(".yaml")
_STAGES = (
    ("encoder.num_layers=1", "train.batch_size=256", "train.steps=2000"),
    ("encoder.num_layers=2", "train.optimizer.learning_rate=7e-4", "train.steps=600"),
    ("encoder.num_layers=4", "train.optimizer.learning_rate=5e-4", "train.steps=620"),
)


def prepare(pairs: Path, test: Path, out: Path) -> None:
    test_sentences = {
        _normalise(text) for path in sorted(test.glob("tatoeba.*")) for _, text in read_lines(path)
    }
    by_code = {
        path.name.split(".")[0]: [tuple(row) for _, *row in read_pairs(path)]
        for path in sorted(pairs.glob("[a-z]*.tsv*"))
    }
    counts = {code: len(rows) for code, rows in by_code.items()}
    stand_ins = _stand_ins(counts)
    for code, rows in by_code.items():
        shared = [row for row in rows if test_sentences & {_normalise(text) for text in row}]
        if shared:
            raise ValueError(f"{code}: {shared[0]} is in the test")
        # All pairs of a very small language are used for training.
        dev_pairs = min(_DEV_PAIRS, len(rows) // 10) if len(rows) >= _LEAST_WITH_DEV else 0
        dev = random.Random(code).sample(rows, dev_pairs)
        known = {text for row in dev for text in row}
        train = ["\t".join(row) for row in rows if not known & set(row)]
        _write(out / "train" / code / f"{find_code(code) or stand_ins[code]}.tsv", train)
        if dev:
            for suffix, side in zip(("eng", code), zip(*dev, strict=True), strict=True):
                _write(out / "dev" / f"tatoeba.{code}-eng.{suffix}", side)
    (out / _COUNTS).write_text(json.dumps(counts), encoding="utf-8")
    print(f"{sum(counts.values())} pairs in {len(counts)} languages; none is in the test")


def _stand_ins(counts: dict[str, int]) -> dict[str, str]:
    unknown = sorted((c for c in counts if not find_code(c)), key=lambda c: -counts[c])
    free = sorted(set(LANGUAGES) - {find_code(code) for code in counts} - {"en"})
    return dict(zip_longest(unknown, free, fillvalue=_STAND_IN))


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _normalise(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower()
    letters = (" " if unicodedata.category(c).startswith("P") else c for c in folded)
    return " ".join("".join(letters).split())


def train(
    data: Path, vocab: Path, out: Path, settings: Sequence[str], steps: Sequence[int] = ()
) -> None:
    print(machine.describe(), flush=True)
    start = time.perf_counter()
    before: list[str] = []
    for number, changes in enumerate(_STAGES):
        run_dir = str(out / f"stage_{number + 1}")
        changes = [*changes, *settings, f"train.bitext=[{data / 'train'}]"]
        if steps:
            changes.append(f"train.steps={steps[number]}")
        options = [part for change in changes for part in ("--set", change)]
        origin = before or ["--set", f"tokenizer.vocab_file={vocab}"]
        _labse("train", str(_CONFIG), "--run-dir", run_dir, *origin, *options)
        before = ["--init", run_dir]
    print(f"trained for {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    _labse("export", run_dir, "--out", str(out / "model"), "--overwrite")


def _labse(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "labse_tf.cli.main", *arguments], check=True)


def score(model_dir: str, test: Path, counts: dict[str, int]) -> None:
    import labse_tf

    model = labse_tf.load(model_dir)
    accuracies = {}
    for path in sorted(test.glob("tatoeba.*-eng.eng")):
        code = path.name.split(".")[1].removesuffix("-eng")
        english = [text for _, text in read_lines(path)]
        foreign = [text for _, text in read_lines(path.with_suffix(f".{code}"))]
        similarities = model.encode(foreign) @ model.encode(english).T
        hits = similarities.argmax(axis=1) == np.arange(len(english))
        accuracies[code] = hits.mean()
        print(f"{code} {100 * accuracies[code]:.1f}")
    seen = [code for code in accuracies if counts.get(code, 0) >= _LEAST_TRAINING_PAIRS]
    for name, codes in (("all", list(accuracies)), ("with 1,000 training pairs", seen)):
        mean = 100 * np.mean([accuracies[code] for code in codes])
        print(f"mean over {len(codes)} languages, {name}: {mean:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    prepare_parser = commands.add_parser("prepare")
    prepare_parser.add_argument("pairs", type=Path, metavar="PAIRS")
    prepare_parser.add_argument("test", type=Path, metavar="TEST")
    prepare_parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    train_parser = commands.add_parser("train")
    train_parser.add_argument("data", type=Path, metavar="DIR")
    train_parser.add_argument("--vocab", type=Path, required=True)
    train_parser.add_argument("--out", type=Path, required=True, metavar="RUNS")
    train_parser.add_argument(
        "--steps", type=int, nargs=len(_STAGES), default=(), help="of each stage; see _STAGES"
    )
    train_parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    score_parser = commands.add_parser("score")
    score_parser.add_argument("model_dir", metavar="MODEL_DIR")
    score_parser.add_argument("test", type=Path, metavar="TEST")
    score_parser.add_argument("--counts", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    if args.command == "prepare":
        prepare(args.pairs, args.test, args.out)
    elif args.command == "train":
        train(args.data, args.vocab, args.out, args.set, args.steps)
    else:
        counts = json.loads((args.counts / _COUNTS).read_text(encoding="utf-8"))
        score(args.model_dir, args.test, counts)


if __name__ == "__main__":
    main()
