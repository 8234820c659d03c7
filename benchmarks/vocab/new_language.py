"""What new rows do for languages that a model has never seen, and what it forgets of the others.

    python -m benchmarks.vocab.new_language RUN SEED --old BITEXT --test TATOEBA --out DIR \\
        [--languages lij,ltg,bam,shn] [--add 8000] [--steps 1000] [--only ARM ...]

RUN is a run of `labse train`. SEED has lines aligned over languages, <lang>_<Script>.txt.xz and
eng_Latn.txt.xz, as openlanguagedata/seed. The last 1,000 lines are kept for a test of retrieval;
the others train the model further, in each of the ways in ARMS and for equal steps. BITEXT has
pairs of the old languages, for replay; TATOEBA is LASER's test, of these. Two runs in parallel,
one core each; what is in DIR is not run again. Prints the tokens a word, and the table.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import timed
from labse_tf.files.outputs import whole_dir
from labse_tf.files.textio import read_lines
from labse_tf.languages import find_code

_TEST_LINES = 1000
_CONFIG = "configs/finetune.yaml"
# Each has the settings that differ from the configuration's; `rows` are how new rows begin, None
# without new tokens.
_REPLAY = {"train.replay": "[{old}]"}
ARMS = {
    "as it is": None,
    "the old vocabulary": {"rows": None},
    "new rows": {"rows": "mean"},
    "new rows, sums": {"rows": "sum"},
    "new rows, random": {"rows": "random"},
    "new rows, layers frozen": {"rows": "mean", "train.optimizer.layer_rate": 0},
    "new rows, ten times the table's rate": {"rows": "mean", "train.optimizer.table_rate": 10},
    "new rows, 0.7 a layer": {"rows": "mean", "train.optimizer.depth_rate": 0.7},
    "new rows, replay": {"rows": "mean", **_REPLAY},
    "new rows, replay 0.25": {"rows": "mean", **_REPLAY, "train.replay_share": 0.25},
    "new rows, replay, ten times the table's rate": {
        **{"rows": "mean", **_REPLAY, "train.optimizer.table_rate": 10}
    },
    "the old vocabulary, replay": {"rows": None, **_REPLAY},
    "the old vocabulary, layers frozen": {"rows": None, "train.optimizer.layer_rate": 0},
    "the old vocabulary, table frozen": {"rows": None, "train.optimizer.table_rate": 0},
    "the old vocabulary, 0.7 a layer": {"rows": None, "train.optimizer.depth_rate": 0.7},
}


def write_pairs(seed: Path, languages: list[str], out: Path) -> None:
    """Writes DIR/train/<lang>.tsv and DIR/test/<lang>.tsv."""
    english = _lines(seed, "eng")
    for language in languages:
        pairs = list(zip(english, _lines(seed, language), strict=True))
        for part, some in (("train", pairs[:-_TEST_LINES]), ("test", pairs[-_TEST_LINES:])):
            path = out / part / f"{find_code(language)}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{one}\t{two}\n" for one, two in some), "utf-8")


def _lines(seed: Path, language: str) -> list[str]:
    [path] = seed.glob(f"{language}_*.txt.xz")
    return [line.strip() for _, line in read_lines(path)]


def run(arm: str, args: argparse.Namespace, core: int) -> dict:
    """Trains and scores an arm; returns name of a test -> language -> accuracy in percent."""
    folder = args.out / arm.replace(" ", "_").replace(",", "").replace("'", "")
    scores, log = folder / "scores.json", args.out / "log.txt"
    if not scores.exists():
        folder.mkdir(exist_ok=True)
        run_dir = args.run
        if (settings := ARMS[arm]) is not None:
            run_dir = folder / "run"
            settings = dict(settings)
            rows = settings.pop("rows")
            settings["train.bitext"] = f"[{args.out / 'data' / 'train'}]"
            settings["train.steps"] = args.steps
            if rows:
                settings["tokenizer.vocab_file"] = args.out / "vocab.txt"
            sets = [
                word
                for key, value in settings.items()
                for word in ("--set", f"{key}={str(value).format(old=args.old)}")
            ]
            train = (_CONFIG, "--init", args.run, "--run-dir", run_dir, *sets, "--overwrite")
            start = (sys.executable, "-m", "benchmarks.vocab.first_rows", rows or "mean", "train")
            timed.run(*start, *train, core=core, log=log)
        tests = [f"new:retrieval={args.out / 'data' / 'test'}", f"old:tatoeba={args.test}"]
        score = (sys.executable, "-m", "benchmarks.cmlm.score", run_dir, scores, *tests)
        timed.run(*score, "--longest", 64, core=core, log=log)
    found = json.loads(scores.read_text("utf-8"))
    new = {
        code: float(np.mean(list(each["model"].values())))
        for code, each in found["new"]["languages"].items()
    }
    old = {code: each["mean_accuracy"] for code, each in found["old"]["languages"].items()}
    return {"new": new, "old": old}


def _table(found: dict[str, dict]) -> str:
    languages = list(next(iter(found.values()))["new"])
    lines = [["", *languages, "mean", "old languages"], ["---"] * (len(languages) + 3)]
    for arm, scores in found.items():
        new = [100 * scores["new"][code] for code in languages]
        old = 100 * float(np.mean(list(scores["old"].values())))
        lines.append([arm, *(f"{one:.1f}" for one in (*new, float(np.mean(new)), old))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("seed", type=Path, metavar="SEED")
    parser.add_argument("--old", type=Path, required=True, metavar="BITEXT")
    parser.add_argument("--test", type=Path, required=True, metavar="TATOEBA")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--languages", default="lij,ltg,bam,shn")
    parser.add_argument("--add", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", nargs="+", metavar="ARM", default=list(ARMS))
    args = parser.parse_args()
    for name in ("run", "old", "test", "out"):
        setattr(args, name, getattr(args, name).resolve())
    args.out.mkdir(parents=True, exist_ok=True)
    if not (args.out / "data").exists():
        with whole_dir(args.out / "data") as partial:
            write_pairs(args.seed, args.languages.split(","), partial)
    if not (args.out / "vocab.txt").exists():
        extend = (args.run, "--text", args.out / "data" / "train", "--add", args.add)
        timed.labse("vocab", "extend", *extend, "--out", args.out / "vocab.txt")
    cores = timed.Cores()

    def on_a_core(arm: str) -> dict:
        with cores.one() as core:
            return run(arm, args, core)

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(args.only, pool.map(on_a_core, args.only), strict=True))
    print(_table(found))


if __name__ == "__main__":
    main()
