"""The experiments of conditional masked language modelling, and of pre-training that pays.

    python -m benchmarks.cmlm.run english --out DIR --minutes 10 --seeds 3 \\
        --data train=DOCUMENTS held_out=HELD_OUT --test senteval=SENTEVAL

Trains each arm of an experiment in experiments.yaml for the same minutes and for each seed, two
runs in parallel, one core each, and evaluates it with tasks of `labse eval`. The minutes become
steps: the speed of each kind of stage is measured first, on a machine that must do nothing else,
and written to DIR/speeds.json; other work beside the runs then slows them without changing them.
DOCUMENTS has files <lang>.txt of sentences in order, as docs/pretraining.md describes them. The
vocabulary is learned from the data first. DIR/results has the figures of each run; what is there is
not run again. `python -m benchmarks.cmlm.report DIR` prints means and standard errors over seeds.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from benchmarks import machine, timed
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.outputs import whole_dir, write_json
from labse_tf.files.textio import read_lines

EXPERIMENTS = Path(__file__).with_name("experiments.yaml")
RESULTS = "results"


class Laboratory:
    """Trains and evaluates the arms of one experiment.

    Attributes:
      arms: lists of stages by name.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._experiment = yaml.safe_load(EXPERIMENTS.read_text("utf-8"))[args.experiment]
        self.arms: dict[str, list[dict[str, Any]]] = self._experiment["arms"]
        self._out, self._seconds = args.out.resolve(), 60 * args.minutes
        self._tests = args.test
        self._data = {name: str(path.resolve()) for name, path in args.data.items()}
        self._data |= {"vocab": str(self._out / "vocab.txt")}
        self._cores = timed.Cores()
        for folder in ("logs", RESULTS):
            (self._out / folder).mkdir(parents=True, exist_ok=True)
        self._speeds: dict[str, timed.Speed] = {}

    def prepare(self) -> None:
        """Mixes and shuffles the documents; learns the vocabulary."""
        for name, source, kept in (
            ("mixed", "train", True),
            ("shuffled", "train", False),
            ("held_out", "held_out", True),
        ):
            if source in self._data:
                corpora, out = Path(self._data[source]), self._out / "documents" / name
                self._data[name] = str(out)
                if not out.exists():
                    shuffle(corpora, out, documents=kept)
        vocab = self._experiment.get("vocab")
        if vocab and not Path(self._data["vocab"]).exists():
            text = self._fill(vocab["text"]).split(",")
            size = ("--vocab-size", vocab["size"], "--out", self._data["vocab"])
            timed.labse("vocab", "build", *text, *size, log=self._out / "logs" / "vocab.log")

    def measure(self, arms: Sequence[str]) -> None:
        """Measures the speed of each kind of stage, unless that is done."""
        path = self._out / "speeds.json"
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
        stages = (stage for arm in arms for stage in self.arms[arm] if "share" in stage)
        kinds = {self._kind(stage): stage for stage in stages}
        new = [kind for kind in kinds if kind not in known]
        with ThreadPoolExecutor(2) as pool:
            speeds = pool.map(lambda kind: self._speed(kinds[kind], new.index(kind)), new)
            known |= zip(new, speeds, strict=True)
        write_json(path, known, overwrite=True)
        self._speeds = {kind: timed.Speed(*speed) for kind, speed in known.items()}

    def _kind(self, stage: Mapping[str, Any]) -> str:
        """Names what a stage's speed depends on."""
        return json.dumps([stage["command"], stage.get("config"), stage.get("set", {})])

    def _speed(self, stage: Mapping[str, Any], number: int) -> timed.Speed:
        with self._cores.one() as core:
            log = self._out / "logs" / f"speed {number}.log"
            timed_stage = self._stage(stage, self._start(stage), 0, core, log)
            return timed.measure(timed_stage, self._out / f"trial {number}", self._seconds)

    def run(self, arm: str, seed: int) -> None:
        """Trains and evaluates an arm on a free core, unless that is done."""
        name = re.sub(r"[^\w=]+", "_", f"{arm} {seed}")
        result = self._out / RESULTS / f"{name}.json"
        if result.exists():
            return
        with self._cores.one() as core:
            folder, log = self._out / "runs" / name, self._out / "logs" / f"{name}.log"
            # What a killed one left; it may have been given another number of steps.
            shutil.rmtree(folder, ignore_errors=True)
            runs = self._train(self.arms[arm], folder, seed, core, log)
            found = {
                "arm": arm,
                "seed": seed,
                "machine": machine.describe(),
                "runs": runs,
                "scores": self._evaluate(arm, folder / str(len(runs)), core, log),
            }
        write_json(result, found, overwrite=True)
        print(f"{arm}, seed {seed}: {runs}", flush=True)

    def _train(
        self, stages: Sequence[Mapping[str, Any]], folder: Path, seed: int, core: int, log: Path
    ) -> list[dict[str, Any]]:
        done: list[dict[str, Any]] = []
        for number, stage in enumerate(stages, 1):
            run_dir = folder / str(number)
            if "keep" in stage:
                parts = (sys.executable, "-m", "benchmarks.cmlm.keep", folder / str(number - 1))
                averaging = ["--averaging"] if stage.get("averaging") else []
                timed.run(*parts, stage["keep"], run_dir, *averaging, core=core, log=log)
                done.append({"keep": stage["keep"]})
                continue
            start = ["--init", folder / str(number - 1)] if number > 1 else self._start(stage)
            timed_stage = self._stage(stage, start, seed, core, log)
            if "steps" in stage:
                steps = stage["steps"]
            else:
                speed = self._speeds[self._kind(stage)]
                steps = speed.steps_in(self._seconds * stage["share"])
            timing = timed.train(timed_stage, run_dir, steps)
            done.append(timing._asdict() | {"held_out": _held_out(run_dir)})
        return done

    def _start(self, stage: Mapping[str, Any]) -> list[object]:
        """Returns the options of a stage that is the first."""
        if "init" in stage:
            return ["--init", self._fill(stage["init"])]
        return ["--set", f"tokenizer.vocab_file={self._data['vocab']}"]

    def _stage(
        self, stage: Mapping[str, Any], start: list[object], seed: int, core: int, log: Path
    ) -> timed.Stage:
        settings = self._experiment.get("set", {}) | stage.get("set", {})
        return timed.Stage(
            command=stage["command"],
            config=stage.get("config", self._experiment["config"]),
            settings={key: self._fill(str(value)) for key, value in settings.items()},
            options=start,
            seed=seed,
            core=core,
            log=log,
        )

    def _evaluate(self, arm: str, run_dir: Path, core: int, log: Path) -> dict[str, Any]:
        out = run_dir.parent / "scores.json"
        tests = [f"{name}={path}" for name, path in self._tests.items()]
        first = ["--first-token"] if arm in self._experiment.get("first_token", ()) else []
        score = (sys.executable, "-m", "benchmarks.cmlm.score", run_dir, out, *tests, *first)
        timed.run(*score, core=core, log=log)
        return json.loads(out.read_text("utf-8"))

    def _fill(self, text: str) -> str:
        """Replaces {NAME} by the path of that data."""
        for name, path in self._data.items():
            text = text.replace(f"{{{name}}}", path)
        return text


def shuffle(corpora: Path, out: Path, *, documents: bool) -> None:
    """Writes the documents of each language in random order, or all sentences as one document."""
    with whole_dir(out) as partial:
        for file in find_corpus_files([str(corpora)], kind="neighbours"):
            text = "\n".join(line for _, line in read_lines(file.path)).strip("\n")
            parts = re.split("\n\n+" if documents else "\n+", text)
            random.Random(0).shuffle(parts)
            text = ("\n\n" if documents else "\n").join(parts)
            (partial / f"{file.language}.txt").write_text(f"{text}\n", "utf-8")


def _held_out(run_dir: Path) -> dict[str, Any] | None:
    """Returns the last figures that were measured on held-out text."""
    path = run_dir / "metrics.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = map(json.loads, reversed(lines))
    return next((row["held_out"] for row in rows if "held_out" in row), None)


def _named(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    return name, Path(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", help="of experiments.yaml")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each arm, 3 by default")
    parser.add_argument("--only", nargs="+", metavar="ARM")
    parser.add_argument("--data", type=_named, nargs="+", required=True, metavar="NAME=DIR")
    parser.add_argument("--test", type=_named, nargs="+", default=[], metavar="[NAME:]TASK=DIR")
    args = parser.parse_args()
    args.data, args.test = dict(args.data), dict(args.test)
    laboratory = Laboratory(args)
    laboratory.prepare()
    arms = args.only or list(laboratory.arms)
    laboratory.measure(arms)
    jobs = [(arm, seed) for seed in range(1, args.seeds + 1) for arm in arms]
    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(laboratory.run, *job) for job in jobs]:
            job.result()


if __name__ == "__main__":
    main()
