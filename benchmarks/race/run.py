"""The race: accuracy after equal minutes of training on the same pairs and the same machine.

    python -m benchmarks.race.data PAIRS TATOEBA NTREX --out DATA
    python -m benchmarks.race.run DATA TATOEBA --peer PEER/bin/python --out RACE \\
        [--minutes 5 10 20 40] [--seeds 1] [--only NAME ...] [--isa AVX2]

Each contestant of contestants.yaml is trained anew for each number of minutes, one after another,
and scored on Tatoeba, on the news of NTREX-128 and on DATA/dev. Our minutes include the start of
every process; the peer's are of training alone. How many steps fit is measured before: the first
steps of each stage, whose time does not count. The vocabularies are made first; their time does not
count either, as all read the same ones. PEER is the environment of
benchmarks/peers/requirements-sentence-transformers.txt; the peer ends with an error if its tokens
differ from ours or its loss does not fall; without PEER, only ours and TF-IDF run. With --isa, no
library uses instructions beyond these.

RACE/<contestant>_<minutes>_<seed>/result.json has the scores and the machine. What is there is not
run again. `python -m benchmarks.race.plot RACE` draws accuracy over minutes and prints the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks import machine, make_parser, timed
from benchmarks.race.score import describe, score_similarities, score_tests

_CONTESTANTS = Path(__file__).with_name("contestants.yaml")
_PEER = "benchmarks.peers.train_sentence_transformers"
_NO_CHECKPOINT = 10**9
_SEEDS_APART = 1000  # Between the seeds of a contestant's tables.


class Race:
    """Trains and scores contestants.

    Attributes:
      tests: folders by name.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._data, self._out, self._peer = args.data, args.out, args.peer
        self.tests = {"tatoeba": args.tatoeba, "news": args.data / "news", "dev": args.data / "dev"}

    def run(self, name: str, contestant: Mapping[str, Any], minutes: float, seed: int) -> None:
        folder = self._out / f"{name.replace(', ', '_').replace(' ', '_')}_{minutes:g}_{seed}"
        result = folder / "result.json"
        if result.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        found = {"name": name, "minutes": minutes, "seed": seed, "machine": machine.describe()}
        if "stages" in contestant or "tables" in contestant:
            found |= self._ours(folder, contestant, minutes, seed)
        elif "peer" in contestant:
            found |= self._peers(folder, contestant, minutes, seed)
        else:
            found["scores"] = self._tfidf()
        partial = result.with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        os.replace(partial, result)
        print(f"{name}, {minutes:g} minutes, seed {seed}: {describe(found['scores'])}", flush=True)

    def vocabulary(self, size: int) -> Path:
        path = self._out / f"vocab_{size}.txt"
        if not path.exists():
            self._out.mkdir(parents=True, exist_ok=True)
            timed.labse("vocab", "build", self._data / "train", "--vocab-size", size, "--out", path)
        return path

    def _ours(self, folder, contestant, minutes: float, seed: int) -> dict[str, Any]:
        vocab = self.vocabulary(contestant["vocab"])
        origin = ["--set", f"tokenizer.vocab_file={vocab}"]
        chained = "stages" in contestant
        run_dirs: list[Path] = []
        trained = []
        for number, stage in enumerate(contestant["stages" if chained else "tables"]):
            start = ["--init", run_dirs[-1]] if chained and run_dirs else origin
            own_seed = seed if chained else seed + _SEEDS_APART * number
            command = stage.get("command", "train")
            bitext = {f"{timed.SECTION[command]}.bitext": f"[{self._data / 'train'}]"}
            if command == "train-laser":
                bitext["laser.target_bitext"] = f"[es={self._data / 'spanish'}]"
            settings = {**stage.get("set", {}), **bitext}
            timed_stage = timed.Stage(command, stage["config"], settings, start, own_seed)
            seconds = 60 * minutes * stage["share"]
            steps = timed.measure(timed_stage, folder / "trial", seconds).steps_in(seconds)
            run_dirs.append(folder / f"run_{number + 1}")
            trained.append(timed.train(timed_stage, run_dirs[-1], steps)._asdict())
        model = folder / "model"
        sources = run_dirs[-1:] if chained else [run_dirs[0], "--beside", *run_dirs[1:]]
        timed.labse("export", *sources, "--out", model, "--no-verify")
        import labse_tf

        scores = score_tests(labse_tf.load(str(model)).encode, self._tests(), self._counts())
        minutes = sum(one["seconds"] for one in trained) / 60
        return {"trained_minutes": minutes, "runs": trained, "scores": scores}

    def _peers(self, folder, contestant, minutes: float, seed: int) -> dict[str, Any]:
        vocab, train = self.vocabulary(contestant["vocab"]), self._data / "train"
        sample = folder / "sample.json"
        timed.run(sys.executable, "-m", "benchmarks.peers.tokens", train, vocab, "--out", sample)
        tests = [word for test in self._tests() for word in ("--test", test)]
        timed.run(
            *(self._peer, "-m", _PEER, train, vocab, *tests, "--sample", sample),
            *("--out", folder / "peer", "--minutes", minutes, "--seed", seed),
            *("--checkpoint-steps", _NO_CHECKPOINT, *contestant["peer"]),
        )
        found = json.loads((folder / "peer" / "result.json").read_text("utf-8"))
        last = found["scores"][-1]
        scores = {name: last[name] for name in self.tests}
        return {
            "trained_minutes": last["minutes"],
            "runs": [{"steps": last["step"]}],
            "versions": found["versions"],
            "scores": scores,
        }

    def _tfidf(self) -> dict[str, Any]:
        from labse_tf.evaluation.tasks.retrieval import tfidf_similarities

        counts = json.loads(self._counts().read_text("utf-8"))
        return {
            name: score_similarities(tfidf_similarities, folder, counts)
            for name, folder in self.tests.items()
        }

    def _tests(self) -> list[str]:
        return [f"{name}={folder}" for name, folder in self.tests.items()]

    def _counts(self) -> Path:
        return self._data / "counts.json"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "data", "tatoeba", peer=str, seeds=1, isa=str)
    parser.add_argument("--out", type=Path, required=True, metavar="RACE")
    parser.add_argument("--minutes", type=float, nargs="+", default=[5, 10, 20, 40])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of contestants.yaml")
    args = parser.parse_args(arguments)
    if args.isa:
        os.environ["ONEDNN_MAX_CPU_ISA"] = os.environ["MKL_ENABLE_INSTRUCTIONS"] = args.isa.upper()
        os.environ["ATEN_CPU_CAPABILITY"] = args.isa.lower()
    contestants = yaml.safe_load(_CONTESTANTS.read_text("utf-8"))
    race = Race(args)
    for seed in range(1, args.seeds + 1):
        for minutes in args.minutes:
            for name, contestant in contestants.items():
                chosen = name in args.only if args.only else args.peer or "peer" not in contestant
                if chosen:
                    race.run(name, contestant, 0 if "tfidf" in contestant else minutes, seed)


if __name__ == "__main__":
    main()
