"""Translators trained on mined pairs: what LaBSE's paper does in section 7, in small.

    python -m benchmarks.mining.translation MODEL TRAIN DEV TEST --language de --out DIR

TRAIN, DEV and TEST are TSV files of English and another language. Of TRAIN and of DEV each, KEPT of
the pairs are taken apart and their sides shuffled; of the rest, half leave only their English in
the pool, and half only the other side. MODEL mines the pools. The threshold is chosen by F1 on the
true pairs of DEV, never by BLEU. Translators from English (configs/cds_tiny.yaml, its first stage
alone) are then trained for the same steps on the true pairs of TRAIN, on random ones, and on what
was mined, at the chosen threshold and at quantiles of the scores; they translate TEST.

Prints a table and draws DIR/bleu.png. DIR keeps the finished parts: the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, timed
from labse_tf.evaluation.bleu import score_translations
from labse_tf.files.hashing import sha256_of_files
from labse_tf.files.outputs import whole_file, write_json
from labse_tf.files.textio import read_lines, read_pairs

KEPT = 0.6
# Shares of the mined pairs that are kept, the best first, beside the chosen threshold.
SHARES = (0.25, 0.5, 1.0)
Pairs = list[tuple[str, str]]


class Pool:
    """Two sides without their alignment, and the pairs that are in both."""

    def __init__(self, pairs: Pairs, seed: int) -> None:
        chance = random.Random(seed)
        # Mining counts equal sentences once.
        pairs = list({english: (english, other) for english, other in pairs}.values())
        pairs = list({other: (english, other) for english, other in pairs}.values())
        chance.shuffle(pairs)
        kept, rest = _cut(pairs, KEPT)
        left, right = _cut(rest, 0.5)
        self.true = kept
        self.english = chance.sample([one for one, _ in (*kept, *left)], len(kept) + len(left))
        self.other = chance.sample([one for _, one in (*kept, *right)], len(kept) + len(right))

    def write(self, folder: Path) -> None:
        """Writes en.txt, other.txt, and gold.tsv: the line numbers of the true pairs."""
        places = [{one: n for n, one in enumerate(side, 1)} for side in (self.english, self.other)]
        gold = [f"{places[0][one]}\t{places[1][other]}" for one, other in self.true]
        for name, lines in (
            ("en.txt", self.english),
            ("other.txt", self.other),
            ("gold.tsv", gold),
        ):
            write_lines(folder / name, lines)


def _cut(pairs: Pairs, share: float) -> tuple[Pairs, Pairs]:
    place = round(share * len(pairs))
    return pairs[:place], pairs[place:]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, overwrite=True) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")


def mine(model: Path, pairs: Path, folder: Path) -> tuple[Pool, dict, list[tuple[float, str, str]]]:
    """Returns the pool, the report at the threshold with the best F1, and all mined pairs."""
    pool = Pool([(one, other) for _, one, other in read_pairs(pairs)], seed=1)
    report = folder / "report.json"
    if not report.exists():
        pool.write(folder)
        sides = (folder / "en.txt", folder / "other.txt")
        out = ("--out", folder / "pairs.tsv", "--overwrite")
        # Without a threshold, all pairs are written.
        timed.labse("mine", model, *sides, *out)
        out = ("--out", folder / "best.tsv", "--overwrite", "--report", report)
        timed.labse("mine", model, *sides, *out, "--gold", folder / "gold.tsv")
    rows = [line.split("\t") for _, line in read_lines(folder / "pairs.tsv")]
    mined = [(float(score), one, other) for score, one, other in rows]
    return pool, json.loads(report.read_text("utf-8"))["gold"], mined


def corpora(
    pool: Pool, threshold: float, mined: list[tuple[float, str, str]]
) -> dict[str, tuple[Pairs, float]]:
    """Returns the training pairs by name, and the lowest score of those that were mined."""
    chance = random.Random(2)
    english, other = zip(*pool.true, strict=True)
    found = {
        "true pairs": (pool.true, 0.0),
        "random pairs": (list(zip(english, chance.sample(other, len(other)), strict=True)), 0.0),
    }
    above = sum(score >= threshold for score, *_ in mined)
    if not above:
        raise SystemExit(f"no mined pair has a score of {threshold} or more, the threshold of DEV")
    counts = {f"mined, the best {share:.0%}": round(share * len(mined)) for share in SHARES}
    for name, count in {"mined, threshold of DEV": above, **counts}.items():
        kept = [(one, other) for _, one, other in mined[:count]]
        found[name] = (kept, mined[count - 1][0])
    return found


def train_and_score(pairs: Pairs, test: Pairs, args: argparse.Namespace, folder: Path) -> dict:
    """Returns BLEU and chrF of a translator that was trained on `pairs`."""
    result = folder / "scores.json"
    if not result.exists():
        corpus = folder / f"{args.language}.tsv"
        write_lines(corpus, [f"{one}\t{other}" for one, other in pairs])
        run_dir, translated = folder / "run", folder / "translated.txt"
        steps = ("--set", f"cds.noisy_steps={args.steps}", "--set", "cds.trusted_steps=0")
        timed.labse(
            *("corpus", "train-cds", "--config", "configs/cds_tiny.yaml", "--run-dir", run_dir),
            *("--noisy", corpus, "--trusted", corpus, "--vocab", args.out / "vocab.txt", *steps),
        )
        write_lines(folder / "source.txt", [one for one, _ in test])
        timed.labse(
            *("translate", run_dir, folder / "source.txt", "--to", args.language),
            *("--out", translated, "--overwrite"),
        )
        texts = [line for _, line in read_lines(translated)]
        scores = score_translations(texts, [other for _, other in test], args.language)
        write_json(result, {name: found["score"] for name, found in scores.items()}, overwrite=True)
    return json.loads(result.read_text("utf-8"))


def _keep_settings(args: argparse.Namespace) -> None:
    """Refuses a DIR whose finished parts were made with other settings."""
    files = [args.train, args.dev, args.test, args.model / "model.json"]
    settings = {
        "steps": args.steps,
        "language": args.language,
        "sha256": sha256_of_files(files, root="."),
    }
    file = args.out / "settings.json"
    if not file.exists():
        args.out.mkdir(parents=True, exist_ok=True)
        write_json(file, settings, overwrite=True)
    elif json.loads(file.read_text("utf-8")) != settings:
        raise SystemExit(f"{args.out} has results of other settings or data: name another --out")


def draw(rows: list[dict], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    mined = sorted((row["pairs"], row["BLEU"]) for row in rows if row["name"].startswith("mined"))
    axis.plot(*zip(*mined, strict=True), marker="o", label="mined pairs")
    for row, style in zip(rows[:2], ("-", ":"), strict=True):
        axis.axhline(row["BLEU"], linestyle=style, color="grey", label=row["name"])
    axis.set(xlabel="mined pairs trained on, the best first", ylabel="BLEU")
    axis.legend()
    with whole_file(out, overwrite=True) as partial:
        figure.savefig(partial, format="png", dpi=130)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("model", "train", "dev", "test"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    parser.add_argument("--language", required=True, help="code of the other language")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--steps", type=int, default=3000, help="of each translator, of 128 pairs")
    args = parser.parse_args(arguments)
    _keep_settings(args)
    _, gold, _ = mine(args.model, args.dev, args.out / "dev")
    pool, _, mined = mine(args.model, args.train, args.out / "train")
    if not (args.out / "vocab.txt").exists():
        sides = (args.out / "train" / "en.txt", args.out / "train" / "other.txt")
        text = [line for path in sides for _, line in read_lines(path)]
        write_lines(args.out / "text" / f"{args.language}.txt", text)
        size = ("--vocab-size", 8000, "--out", args.out / "vocab.txt")
        timed.labse("vocab", "build", args.out / "text", *size)
    test = [(one, other) for _, one, other in read_pairs(args.test)]
    true, rows = set(pool.true), []
    for name, (pairs, threshold) in corpora(pool, gold["threshold"], mined).items():
        folder = args.out / name.replace(", ", "_").replace(" ", "_").replace("%", "")
        scores = train_and_score(pairs, test, args, folder)
        right = sum(pair in true for pair in pairs) / len(pairs)
        facts = {"name": name, "pairs": len(pairs), "threshold": threshold, "right": right}
        rows.append(facts | scores)
    write_json(
        args.out / "result.json",
        {"gold_of_dev": gold, "rows": rows, "machine": machine.describe(), "steps": args.steps},
        overwrite=True,
    )
    draw(rows, args.out / "bleu.png")
    print("| trained on | pairs | of these right, % | lowest score | BLEU | chrF |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        low = f"{row['threshold']:.3f}" if row["name"].startswith("mined") else ""
        scores = f"{row['BLEU']:.1f} | {row['chrF']:.1f}"
        print(f"| {row['name']} | {row['pairs']} | {100 * row['right']:.1f} | {low} | {scores} |")


if __name__ == "__main__":
    main()
