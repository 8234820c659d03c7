"""The effect of the smoothing exponent on the languages of a corpus, from largest to smallest.

    python -m benchmarks.vocab.exponents TRAIN HELD_OUT --out FOLDER [--vocab-size 60000]

Learns vocabularies of one size from TRAIN with the exponents 1.0, 0.7, 0.3 and 0.0, and measures
each on HELD_OUT (both as for `labse vocab build`). Writes exponents.tsv, one row per language and
exponent, and exponents.png, and prints the means over each third of the languages.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from beam_pipelines import build_vocab
from beam_pipelines.counting import word_counts  # noqa: E402
from beam_pipelines.reading.readers import read_file  # noqa: E402
from beam_pipelines.records.records import texts_by_language  # noqa: E402
from labse_tf.config import TokenizerConfig  # noqa: E402
from labse_tf.files.corpus_files import find_corpus_files  # noqa: E402
from labse_tf.languages import language_of  # noqa: E402
from vocab import wordpiece_file  # noqa: E402
from vocab.coverage import Coverage, CoverageMeter  # noqa: E402
from vocab.wordpiece import WordPiece  # noqa: E402

EXPONENTS = (1.0, 0.7, 0.3, 0.0)

# Fewer tokens are no gain if text is lost to [UNK], so the two panels belong together.
_MEASURES = {
    "tokens per sentence, relative to exponent 1.0": lambda one, base: (
        one.tokens_per_sentence / base.tokens_per_sentence
    ),
    "characters lost to [UNK], %": lambda one, base: 100 * one.lost_rate,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train")
    parser.add_argument("held_out")
    parser.add_argument("--vocab-size", type=int, default=60_000)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    measured = {}
    for exponent in EXPONENTS:
        path = args.out / f"vocab-{exponent}.txt"
        if not path.exists():
            build_vocab.run(
                [args.train],
                str(path),
                vocab_size=args.vocab_size,
                smoothing_exponent=exponent,
            )
        measured[exponent] = _measure(path, args.held_out)
        print(f"exponent {exponent}: measured", flush=True)
    words = word_counts.count([args.train], word_counts.Settings()).tokens
    languages = sorted(measured[1.0].keys() & words.keys(), key=words.get, reverse=True)
    _write_table(args.out / "exponents.tsv", languages, words, measured)
    _plot(args.out / "exponents.png", languages, words, measured)
    _print_thirds(languages, words, measured)


def _measure(vocab: Path, held_out: str) -> dict[str, Coverage]:
    limit = TokenizerConfig().max_bytes_per_word
    meter = CoverageMeter(WordPiece(wordpiece_file.read(vocab), max_bytes_per_word=limit))
    for file in find_corpus_files([held_out]):
        for record in read_file(file):
            for language, text in texts_by_language(record):
                meter.add(language, text)
    return meter.languages


def _write_table(
    path: Path, languages: Iterable[str], words: dict[str, int], measured: dict
) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["language", "words", "exponent", "unknown", "lost", "tokens_per_sentence"])
        for language in languages:
            for exponent in EXPONENTS:
                one = measured[exponent][language]
                rates = (one.unknown_rate, one.lost_rate, one.tokens_per_sentence)
                writer.writerow([language, words[language], exponent, *map("{:.4f}".format, rates)])


def _plot(path: Path, languages: list[str], words: dict[str, int], measured: dict) -> None:
    figure, panels = pyplot.subplots(
        len(_MEASURES), 1, figsize=(10, 7), sharex=True, layout="constrained"
    )
    sizes = [words[language] for language in languages]
    for panel, (title, measure) in zip(panels, _MEASURES.items(), strict=True):
        for exponent, colour in zip(EXPONENTS, ["0.5", "C0", "C3", "C1"], strict=True):
            values = [
                measure(measured[exponent][language], measured[1.0][language])
                for language in languages
            ]
            panel.plot(sizes, values, ".", color=colour, alpha=0.8, label=f"exponent {exponent}")
        panel.set_title(title, loc="left", fontsize=11)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, ncols=len(EXPONENTS), loc="lower right")
    panels[-1].set_xscale("log")
    panels[-1].set_xlabel("words of the language in the training text")
    figure.savefig(path, dpi=120)


def _print_thirds(languages: list[str], words: dict[str, int], measured: dict) -> None:
    third = -(-len(languages) // 3)
    print("| languages | words per language | exponent | [UNK] % | lost % | tokens per sentence |")
    print("|---|---|---|---|---|---|")
    for start in range(0, len(languages), third):
        group = languages[start : start + third]
        names = ", ".join(language_of(code).name for code in (group[0], group[-1]))
        span = f"{words[group[0]]:,} to {words[group[-1]]:,}"
        for exponent in EXPONENTS:
            rows = [measured[exponent][language] for language in group]
            unknown, lost, tokens = (
                sum(getattr(row, name) for row in rows) / len(rows)
                for name in ("unknown_rate", "lost_rate", "tokens_per_sentence")
            )
            print(
                f"| {len(group)} ({names}) | {span} | {exponent} | {100 * unknown:.2f} | "
                f"{100 * lost:.2f} | {tokens:.1f} |"
            )


if __name__ == "__main__":
    main()
