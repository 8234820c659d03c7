"""How much synthetic noise the bitext heuristics find, and how many good pairs they lose.

    python -m benchmarks.corpora.bitext_noise FOLDER ... [--languages de,fr] [--pairs 1000] \\
        [--out FILE.md]

A FOLDER holds `<lang>.tsv` (English<TAB>foreign), whose pairs are assumed to be good. For every
kind of noise, a tenth as many pairs made from other lines of the file are added to the --pairs of
each language. The filters then learn from and judge the mixture, alone and together. Prints one
Markdown table per folder: the share of each kind that is dropped, in %, and the share of good pairs
that is lost; then what all filters together drop, by the length of the longer side, in characters.
"""

from __future__ import annotations

import bisect
import collections
import functools
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from beam_pipelines.filtering.choose_filters import build_filters
from beam_pipelines.filtering.unique_sides import SOURCE, TARGET, choose_by_side
from beam_pipelines.filters import Filter
from beam_pipelines.filters.unusual_length import count_lengths, describe_lengths
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Batch, Pair
from benchmarks import make_parser
from labse_tf.files.corpus_files import BITEXT, find_corpus_files

GOOD = "good pairs lost"
_NOISE_SHARE = 0.1
_LEAST_WORDS = 4
_PAIRS_PER_SIDE = 3
_TOGETHER = "**together**"
_LENGTHS = (20, 40, 80)  # lower bounds of the length classes

# From a pair and the corpus to a noisy pair, or None if this pair yields none.
_Maker = Callable[[Pair, "Corpus", random.Random], Pair | None]


class Corpus:
    """The pairs of a folder: `good` by language, and `spare` ones to make noise from."""

    def __init__(self, folder: str, languages: Sequence[str] | None, pairs: int) -> None:
        self.good: dict[str, list[Pair]] = {}
        self.spare: dict[str, list[Pair]] = {}
        self.by_source: dict[str, list[Pair]] = collections.defaultdict(list)
        for file in find_corpus_files([folder], kind=BITEXT):
            found = list(dict.fromkeys(read_file(file)))
            random.Random(0).shuffle(found)
            for pair in found:
                self.by_source[pair.source].append(pair)
            if languages is None or file.language in languages:
                # At least half is reserved for the noise.
                size = min(pairs, len(found) // 2)
                self.good[file.language] = found[:size]
                self.spare[file.language] = found[size:]


def _swap_lines(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair | None:
    other = generator.choice(corpus.spare[pair.language])
    return pair._replace(target=other.target) if other.target != pair.target else None


def _shuffle_words(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair | None:
    words = pair.target.split()
    generator.shuffle(words)
    shuffled = " ".join(words)
    return pair._replace(target=shuffled) if len(words) >= _LEAST_WORDS else None


def _in_other_language(
    pair: Pair, corpus: Corpus, generator: random.Random, side: str = "target"
) -> Pair | None:
    """Replaces a side by the sentence in another language, as happens in multilingual corpora."""
    others = [
        other.target
        for other in corpus.by_source[pair.source]
        if other.language != pair.language and other.target not in pair[:2]
    ]
    return pair._replace(**{side: generator.choice(others)}) if others else None


def _truncate(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair | None:
    """Cuts one side to a tenth to a half of its characters, at the end of a word if possible."""
    side = generator.choice(("source", "target"))
    text = getattr(pair, side)
    cut = text[: max(2, round(len(text) * generator.uniform(0.1, 0.5)))]
    if " " in cut and not text[len(cut)].isspace():
        cut = cut[: cut.rindex(" ")]
    return pair._replace(**{side: cut.strip()}) if len(text) > 2 * len(cut.strip()) > 2 else None


def _copy_source(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair:
    """Copies the source, every other time with a small change."""
    text = pair.source
    numbered = f"{text} ({generator.randint(1, 99)})"
    marked = re.sub(r"[.?!]$", " ...", text), "- " + text.replace('"', "”")
    changes = (text, text, text.upper(), numbered, *marked)
    return pair._replace(target=generator.choice(changes))


def _mark_up(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair:
    """Keeps a few words of the target between tags, entities and addresses."""
    words = " ".join(pair.target.split()[:3])[:20]
    number = generator.randint(1, 999)
    targets = (
        f'<a href="/index.php?id={number}" class="menu-item">{words}</a>',
        f'<td width="{number}"><p><b>{words}</b></p></td>&nbsp;&nbsp;&nbsp;<br/>',
        f"{words} https://www.example.com/{words.split()[0]}/page-{number}.html?lang=en",
        f"{{{{name}}}} %(count)s {words} {{{{value}}}} ${{price}} &raquo;&nbsp;",
    )
    return pair._replace(target=generator.choice(targets))


def _change_numbers(pair: Pair, corpus: Corpus, generator: random.Random) -> Pair | None:
    changed = re.sub(
        r"\d", lambda match: str((int(match[0]) + generator.randint(1, 9)) % 10), pair.target
    )
    both = re.search(r"\d", pair.source) and re.search(r"\d", pair.target)
    return pair._replace(target=changed) if both else None


MAKERS: dict[str, _Maker] = {
    "wrong language": _in_other_language,
    "source not English": functools.partial(_in_other_language, side="source"),
    "truncated side": _truncate,
    "copied source": _copy_source,
    "mark-up": _mark_up,
    "changed numbers": _change_numbers,
    "swapped lines": _swap_lines,
    "shuffled words": _shuffle_words,
}
_BOILERPLATE, _DUPLICATES = "boilerplate", "duplicates"
KINDS = (*MAKERS, _BOILERPLATE, _DUPLICATES)


def mix(corpus: Corpus, language: str, generator: random.Random) -> list[tuple[str, Pair]]:
    """Returns the good pairs and the noise, each with its kind."""
    good, spare = corpus.good[language], corpus.spare[language]
    mixture = [(GOOD, pair) for pair in good]
    size = round(len(good) * _NOISE_SHARE)
    for kind, make in MAKERS.items():
        made = (make(pair, corpus, generator) for pair in generator.sample(spare, len(spare)))
        mixture += [(kind, pair) for pair in made if pair][:size]
    text, *others = generator.sample(spare, min(size, len(spare)))
    mixture += [(_BOILERPLATE, pair._replace(target=text.target)) for pair in others]
    return mixture + [(_DUPLICATES, pair) for pair in generator.sample(good, size)]


def judge(filters: Sequence[Filter], mixture: Sequence[tuple[str, Pair]]) -> dict[str, np.ndarray]:
    """Returns which pairs each filter, each deduplication, and all of them together drop."""
    pairs = [pair for _, pair in mixture]
    language = pairs[0].language
    learned = dict(describe_lengths((language, count_lengths(Batch(language, pairs)))))
    dropped = {}
    for filter_ in filters:
        if hasattr(filter_, "with_learned"):
            filter_ = filter_.with_learned(learned)
        dropped[filter_.name] = np.array(
            [not filter_.accept(score) for score in filter_.score(pairs)]
        )
    every = np.any(list(dropped.values()), axis=0)
    dropped["duplicate"] = _later_copies(pairs, np.zeros(len(pairs), bool))
    sides = f"duplicate_side, {_PAIRS_PER_SIDE} per side"
    dropped[sides] = _shared_sides(pairs, np.zeros(len(pairs), bool))
    dropped[_TOGETHER] = every | _later_copies(pairs, every)
    every = every | _shared_sides(pairs, every)
    dropped["**together, with duplicate_side**"] = every | _later_copies(pairs, every)
    return dropped


def _later_copies(pairs: Sequence[Pair], gone: np.ndarray) -> np.ndarray:
    seen = set()
    later = np.zeros(len(pairs), bool)
    for place in np.flatnonzero(~gone):
        later[place] = pairs[place] in seen
        seen.add(pairs[place])
    return later


def _shared_sides(pairs: Sequence[Pair], gone: np.ndarray) -> np.ndarray:
    left = [pairs[place] for place in np.flatnonzero(~gone)]
    for side in (SOURCE, TARGET):
        left = choose_by_side(left, side, _PAIRS_PER_SIDE)
    kept = set(left)
    return ~gone & np.array([pair not in kept for pair in pairs])


class Table:
    """Counts of pairs of each kind, by filter and by length."""

    def __init__(self) -> None:
        # By kind, and by length class and kind: all pairs, and those that are dropped.
        self.pairs, self.dropped = collections.Counter(), collections.Counter()
        self.lengths, self.dropped_lengths = collections.Counter(), collections.Counter()

    def add(self, mixture: Sequence[tuple[str, Pair]], dropped: dict[str, np.ndarray]) -> None:
        """Adds the pairs of a language."""
        for place, (kind, pair) in enumerate(mixture):
            length = bisect.bisect(_LENGTHS, max(map(len, pair[:2])))
            self.lengths[length, kind] += 1
            self.dropped_lengths[length, kind] += int(dropped[_TOGETHER][place])
            self.pairs[kind] += 1
            for row, flags in dropped.items():
                self.dropped[row, kind] += int(flags[place])

    def __str__(self) -> str:
        kinds = [kind for kind in (GOOD, *KINDS) if self.pairs[kind]]

        def share(dropped: int, pairs: int) -> str:
            return f"{100 * dropped / pairs:.1f}" if pairs else "-"

        rows = [["filter", *kinds], ["---"] * (len(kinds) + 1)]
        for name in dict.fromkeys(name for name, _ in self.dropped):
            rows.append([name, *(share(self.dropped[name, k], self.pairs[k]) for k in kinds)])
        rows.append(["pairs", *(str(self.pairs[kind]) for kind in kinds)])
        rows += [[], ["characters", *kinds], ["---"] * (len(kinds) + 1)]
        for number, (low, high) in enumerate(zip((0, *_LENGTHS), (*_LENGTHS, ""), strict=True)):
            places = [(number, kind) for kind in kinds]
            cells = (share(self.dropped_lengths[at], self.lengths[at]) for at in places)
            rows.append([f"{low} to {high}", *cells])
        return "\n".join(f"| {' | '.join(row)} |" if row else "" for row in rows)


def main() -> None:
    parser = make_parser(__doc__, pairs=1000, out=Path)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--languages", type=lambda text: text.split(","))
    args = parser.parse_args()
    every, texts = Table(), []
    filters = build_filters(BITEXT)
    for folder in args.folders:
        corpus = Corpus(folder, args.languages, args.pairs)
        table = Table()
        for language in corpus.good:
            mixture = mix(corpus, language, random.Random(1))
            dropped = judge(filters, mixture)
            table.add(mixture, dropped)
            every.add(mixture, dropped)
        texts += [f"{Path(folder).name}:", str(table)]
    text = "\n\n".join([*texts, "All:", str(every)])
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
