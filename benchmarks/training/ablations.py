"""The paper's findings at small scale: dual encoders that differ in one setting each.

    python -m benchmarks.training.ablations_data ... --out DATA
    python -m benchmarks.training.ablations DATA --out DIR [--only margin,scale] [--seeds 42,43]

Learns vocabularies from DATA and trains the dual encoder of benchmarks/training/ablations.yaml,
with one setting changed at a time and for each seed, two runs in parallel, one core each. Scores
each by retrieval on both tests. The same command resumes after an interruption; for tables and
plots of finished runs: `python -m benchmarks.training.ablations_report DIR`.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import make_parser, timed

CONFIG = Path(__file__).with_name("ablations.yaml")
MINER = Path(__file__).with_name("ablations_miner.yaml")
RESULTS = "results"
_SCORE = "import sys; from benchmarks.training.ablations import score; score(*sys.argv[1:])"
BASE = "base"

# In the order of the report.
TITLES = {
    "margin": "Margin (section 6.1)",
    "scale": "Scale",
    "negatives": "Global or local negatives",
    "batch": "Batch size, by gradient cache, at equal steps",
    "pretraining": "Pre-training (section 6.2)",
    "steps": "Steps, with pre-training and without (figure 5)",
    "vocabulary": "Size of the vocabulary (section 6.2)",
    "data": "Pairs a language",
    "start": "Starting without pre-training: [CLS] random or an average",
    "duplicates": "Duplicates as negatives",
    "hard_negatives": "Hard negatives (appendix B)",
    "languages": "Sampling and mixing of languages",
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A run: the base configuration with some changes."""

    group: str
    label: str
    changes: tuple[str, ...] = ()
    initialised: bool = False
    pooling: str = "cls"
    mined: bool = False
    replicas: int = 1
    vocab_size: int = 16_000
    most_pairs: int = 0  # Per language in each corpus; 0: all.

    def name(self, seed: int) -> str:
        """Returns the name of its run; equal runs have the same name."""
        as_base = dataclasses.replace(self, group="", label="") == Variant("", "")
        name = BASE if as_base else re.sub(r"[^\w.]+", "_", f"{self.group}_{self.label}")
        return f"{name}-{seed}"


def variants() -> list[Variant]:
    """Returns all runs to compare, ordered by group."""
    rows = []

    def add(group: str, label: object, *changes: str, **more: Any) -> None:
        rows.append(Variant(group, str(label), changes, **more))

    for margin in (0.0, 0.1, 0.2, 0.3, 0.4):
        add("margin", margin, *([] if margin == 0.3 else [f"train.margin={margin}"]))
    for scale in (10, 20, 100):
        add("scale", scale, *([] if scale == 10 else [f"train.scale={scale}"]))
    add("negatives", "global")
    add("negatives", "local", "train.global_negatives=false", replicas=4)
    for size in (64, 128, 256, 512, 1024, 2048, 4096):
        # Few enough steps to make the largest batch affordable.
        chunks = ["train.chunk_size=256"] if size > 256 else []
        add("batch", size, f"train.batch_size={size}", "train.steps=60", *chunks)
    add("pretraining", "pre-trained", "train.dev=[TEST]", initialised=True)
    add("pretraining", "from scratch", "train.dev=[TEST]")
    random = ("encoder.averaging_start=false", "encoder.initializer_range=0.06")
    for steps in (100, 200, 400, 800):
        changes = f"train.steps={steps}"
        # The mean, because pre-training leaves no sentence vector in [CLS].
        add("steps", f"{steps}, pre-trained", changes, initialised=True, pooling="mean")
        add("steps", f"{steps}, averaging start", changes, pooling="mean")
        add("steps", f"{steps}, at random", changes, *random, pooling="mean")
    # The paper's is 4.2 times as large as mBERT's.
    for size in (4_000, 16_000, 64_000):
        add("vocabulary", size, vocab_size=size)
    for most in (300, 1_000, 5_000, 0):
        add("data", f"at most {most}" if most else "all", most_pairs=most)
    add("start", "average, initializer range 0.01")
    for start, averages, spread in (
        ("average", "true", 0.06),
        ("at random", "false", 0.06),
        ("at random", "false", 0.01),
    ):
        changes = (f"encoder.averaging_start={averages}", f"encoder.initializer_range={spread}")
        add("start", f"{start}, initializer range {spread}", *changes)
    add("duplicates", "left out")
    add("duplicates", "as negatives", "train.mask_duplicates=false")
    add("hard_negatives", "none", mined=True)
    add("hard_negatives", "3", "train.hard_negatives=3", mined=True)
    add("languages", "mixed, exponent 0.5")
    add("languages", "mixed, exponent 1", "train.language_exponent=1.0")
    return rows


class Laboratory:
    """The folder of a series of runs, and what they share."""

    def __init__(self, data: Path, out: Path) -> None:
        self._data, self._out = data.resolve(), out.resolve()
        self._cores = timed.Cores()
        for folder in ("logs", RESULTS):
            (self._out / folder).mkdir(parents=True, exist_ok=True)

    def prepare(self, rows: list[Variant]) -> None:
        """Learns the vocabularies, pre-trains and mines hard negatives, as `rows` need it."""
        vocab, bitext = self._vocab(Variant.vocab_size), self._data / "bitext"
        for size in sorted({Variant.vocab_size} | {row.vocab_size for row in rows}):
            if not (path := self._vocab(size)).exists():
                options = ("--vocab-size", size, "--out", path)
                self._labse("vocab", "vocab", "build", self._data / "text", *options)
        for most in {row.most_pairs for row in rows} - {0}:
            self._cut_bitext(most)
        for pooling in sorted({row.pooling for row in rows if row.initialised}):
            settings = [f"tokenizer.vocab_file={vocab}", f"pretrain.bitext=[{bitext}]"]
            settings.append(f"pretrain.monolingual=[{self._data / 'text'}]")
            settings.append(f"encoder.pooling={pooling}")
            run_dir = self._pretrained(pooling)
            run = ("pretrain", CONFIG, "--run-dir", run_dir)
            self._labse(run_dir.name, *run, *_set(settings))
        if any(row.mined for row in rows):
            miner = self._out / "miner"
            settings = [f"tokenizer.vocab_file={vocab}", f"train.bitext=[{bitext}]"]
            self._labse("miner", "train", MINER, "--run-dir", miner, *_set(settings))
            options = ("--model", miner, "--out", self._out / "mined")
            self._labse("mined", "mine-negatives", bitext, *options)

    def _vocab(self, size: int) -> Path:
        return self._out / f"vocab_{size}.txt"

    def _pretrained(self, pooling: str) -> Path:
        return self._out / f"pretrained_{pooling}"

    def _bitext(self, most: int) -> Path:
        return self._out / f"bitext_{most}" if most else self._data / "bitext"

    def _cut_bitext(self, most: int) -> None:
        """Writes the first `most` pairs of each file, which are in random order."""
        for path in (self._data / "bitext").rglob("*.tsv"):
            cut = self._bitext(most) / path.relative_to(self._data / "bitext")
            cut.parent.mkdir(parents=True, exist_ok=True)
            with path.open(encoding="utf-8", newline="\n") as lines:
                cut.write_text("".join(itertools.islice(lines, most)), "utf-8", newline="\n")

    def run(self, variant: Variant, seed: int) -> None:
        """Trains and scores a variant on a free core, unless that is done."""
        name = variant.name(seed)
        result = self._out / RESULTS / f"{name}.json"
        if result.exists():
            return
        run_dir = self._out / "runs" / name
        settings = [f"seed={seed}", f"encoder.pooling={variant.pooling}", *variant.changes]
        corpus = self._out / "mined" if variant.mined else self._bitext(variant.most_pairs)
        settings.append(f"train.bitext=[{corpus}]")
        test = self._data / "test" / "tatoeba"
        settings = [setting.replace("[TEST]", f"[{test}]") for setting in settings]
        options = ["--run-dir", run_dir]
        if variant.initialised:
            options += ["--init", self._pretrained(variant.pooling)]
        else:
            settings.append(f"tokenizer.vocab_file={self._vocab(variant.vocab_size)}")
        if variant.replicas > 1:
            options += ["--strategy", "mirrored", "--logical-cpus", variant.replicas]
        with self._cores.one() as core:
            self._labse(name, "train", CONFIG, *options, *_set(settings), core=core)
            command = (sys.executable, "-c", _SCORE, run_dir, self._data / "test", result)
            timed.run(*command, core=core, log=self._log(name))
        found = json.loads(result.read_text("utf-8"))
        print(name, {test: score["accuracy"] for test, score in found.items()}, flush=True)

    def _labse(self, name: str, *arguments: object, core: int | None = None) -> None:
        timed.labse(*arguments, core=core, log=self._log(name))

    def _log(self, name: str) -> Path:
        return self._out / "logs" / f"{name}.log"


def score(run_dir: str, tests: str, result: str) -> None:
    """Writes for each folder of `tests` the metrics that `labse train` measures on dev pairs."""
    import tensorflow as tf

    from labse_tf.config import TrainRun
    from labse_tf.data.held_out import read_dev_pairs
    from labse_tf.files.outputs import whole_file
    from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
    from labse_tf.training.runs.run_dir import open_existing
    from labse_tf.training.validation import DevEvaluator

    run = open_existing(run_dir)
    config = run.read_config(TrainRun)
    tokenizer = load_tokenizer(run)
    # The newest: in runs that measure during training, the best was selected on the test.
    encoder = load_encoder(run, checkpoint=tf.train.latest_checkpoint(run.checkpoints))
    scores = {}
    for test in sorted(Path(tests).iterdir()):
        train = dataclasses.replace(config.train, dev=[str(test)], dev_size=1000)
        evaluator = DevEvaluator(
            strategy=tf.distribute.get_strategy(),
            encoder=encoder,
            tokenizer=tokenizer,
            pools=read_dev_pairs(train, config.languages),
            lengths=train.bucket_lengths,
        )
        [scores[test.name]] = evaluator.evaluate(tf.constant(-1)).values()
    with whole_file(Path(result), overwrite=True) as partial:
        partial.write_text(json.dumps(scores) + "\n", encoding="utf-8")


def _set(settings: list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def main() -> None:
    parser = make_parser(__doc__, "data", seeds="42,43")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", metavar="GROUPS", help=f"of {', '.join(TITLES)}")
    args = parser.parse_args()
    groups = args.only.split(",") if args.only else list(TITLES)
    rows = [variant for variant in variants() if variant.group in groups]
    laboratory = Laboratory(args.data, args.out)
    laboratory.prepare(rows)
    for seed in map(int, args.seeds.split(",")):
        # A run that several groups share is done once.
        runs = {variant.name(seed): variant for variant in rows}
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda variant, seed=seed: laboratory.run(variant, seed), runs.values()))


if __name__ == "__main__":
    main()
