"""Words to measure vocabulary learners on: from real text, and generated ones like them."""

from __future__ import annotations

import collections
import random
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from labse_tf.demo.corpus.sources import SOURCES
from labse_tf.demo.corpus.write import collect_pairs
from labse_tf.files.textio import COMPRESSIONS, read_lines
from vocab.basic_tokenizer import plain_spaces, split_words


def count_words(places: Iterable[str]) -> collections.Counter[str]:
    """Counts the words of all .txt and .tsv files in `places`; of the demo corpus if none is given.

    Files of any language and all columns of a line are counted.
    """
    counts: collections.Counter[str] = collections.Counter()
    for text in _files_text(places) if places else _demo_text():
        counts.update(split_words(plain_spaces(text)))
    return counts


def _files_text(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        path = Path(place)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.name
            for compression in COMPRESSIONS:
                name = name.removesuffix(compression)
            if name.endswith((".txt", ".tsv")):
                yield from (line for _, line in read_lines(file))


def _demo_text() -> Iterator[str]:
    pairs, _ = collect_pairs(SOURCES)
    for pair in pairs:
        yield pair.english
        yield pair.foreign


def extend(words: dict[str, int], size: int, seed: int = 0) -> dict[str, int]:
    """Returns the words and new ones, `size` in all.

    A new word is the beginning of one word and the end of another of the same length and script,
    with the count of the first. Both are drawn uniformly from all words, so the distributions of
    length, count and script do not change. Words of one character yield no new ones.
    """
    generator = random.Random(seed)
    groups: dict[tuple[int, str], list[str]] = collections.defaultdict(list)
    for word in words:
        groups[len(word), _script(word)].append(word)
    originals = [word for word in words if len(word) > 1]
    extended = dict(words)
    while len(extended) < size:
        word = generator.choice(originals)
        other = generator.choice(groups[len(word), _script(word)])
        cut = generator.randrange(1, len(word))
        extended.setdefault(word[:cut] + other[cut:], words[word])
    return extended


def _script(word: str) -> str:
    return unicodedata.name(word[0], "").split(" ")[0]
