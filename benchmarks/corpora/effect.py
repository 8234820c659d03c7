"""The effect of filtering on a dual encoder: one small model per corpus, trained for equal steps.

    python -m benchmarks.corpora.effect CONFIG --vocab VOCAB --out RUNS
        --corpus clean=DIR/clean --corpus noisy=DIR/noisy --corpus filtered=DIR/clean2/bitext
        --test tatoeba=DIR/tatoeba --test libreoffice=DIR/libreoffice
        [--good DIR/clean] [--set KEY=VALUE ...]

Trains with `labse train`, exports with `labse export` and scores with `labse eval retrieval` on at
most 1000 pairs per test. Prints a Markdown table: retrieval accuracy in %, the mean of both
directions; and for each corpus its number of pairs, and the share of them that is in --good. The
same command resumes an interrupted run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Pair
from benchmarks import make_parser, timed
from labse_tf.files.corpus_files import BITEXT, find_corpus_files


def main() -> None:
    parser = make_parser(__doc__, good=str, set=[])
    parser.add_argument("config")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=BITEXT")
    parser.add_argument("--test", action="append", required=True, metavar="NAME=DIR")
    args = parser.parse_args()
    tests = dict(test.split("=", 1) for test in args.test)
    settings = [f"tokenizer.vocab_file={args.vocab}", *args.set]
    good = read(args.good) if args.good else set()
    header = ["trained on", "pairs", *(["good"] if good else []), *tests]
    print(f"| {' | '.join(header)} |\n{'|---' * len(header)}|", flush=True)
    for name, corpus in (corpus.split("=", 1) for corpus in args.corpus):
        run = args.out / name
        model = train(args.config, corpus, run, settings)
        pairs = read(corpus)
        cells = [name, f"{len(pairs):,}"]
        if good:
            cells.append(f"{100 * len(pairs & good) / len(pairs):.1f} %")
        for test, data in tests.items():
            cells.append(f"{evaluate(model, data, run / f'{test}.json'):.1f}")
        print(f"| {' | '.join(cells)} |", flush=True)


def read(corpus: str) -> set[Pair]:
    """Returns the distinct pairs of a corpus."""
    return {pair for file in find_corpus_files([corpus], kind=BITEXT) for pair in read_file(file)}


def train(config: str, corpus: str, run: Path, settings: Sequence[str]) -> Path:
    """Trains a dual encoder on the bitext `corpus`; returns its model dir."""
    settings = [*settings, f"train.bitext=[{corpus}]"]
    options = [part for setting in settings for part in ("--set", setting)]
    timed.labse("train", config, "--run-dir", run / "run", *options)
    model = run / "model"
    timed.labse("export", run / "run", "--out", model, "--length", "64", "--overwrite")
    return model


def evaluate(model: Path, data: str, out: Path) -> float:
    """Returns the retrieval accuracy in %, the mean of both directions."""
    options = ("--data", data, "--max-candidates", "1000", "--out", out, "--overwrite")
    timed.labse("eval", "retrieval", model, *options)
    [scores] = json.loads(out.read_text("utf-8"))["average"].values()
    return 50 * (scores["to_english"] + scores["from_english"])


if __name__ == "__main__":
    main()
