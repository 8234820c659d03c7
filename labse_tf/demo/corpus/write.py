"""Writes the demo corpus to a folder, divided into training pairs and held-out pairs.

    OUT/bitext/<lang>.tsv.gz       English<TAB>foreign, for training
    OUT/dev/<lang>.tsv.gz          the same, held out
    OUT/monolingual/<lang>.txt.gz  the sentences of the training pairs, English in en.txt.gz
    OUT/SOURCES.json               the packages, with their licences and numbers of pairs

Training and held-out pairs share no sentence, compared by `sentence_key`: letters only, without
filled placeholders. The hash of the English key decides, so a message that is held out in one
language is held out in all. The same package versions give the same bytes.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import multiprocessing
import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import regex

from labse_tf.demo.corpus.cleaning import clean_pair
from labse_tf.demo.corpus.sources import (
    MESSAGES,
    SOURCES,
    Source,
    find_folder,
    find_licence,
    list_files,
    read_raw_pairs,
)
from labse_tf.files.outputs import whole_dir
from labse_tf.progress import Progress

SOURCES_FILE = "SOURCES.json"
HELD_OUT_SHARE = 0.15
MIN_WORDS = 4
MAX_DEV_PAIRS = 500

_FILES_PER_CALL = 16  # To another process.
_FILLED = regex.compile(r"(?<!\p{Latin})[XYZ](?!\p{Latin})")
_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")


class SourcedPair(NamedTuple):
    """A clean translation, the paper's code of its other side, and the distribution it is from."""

    english: str
    foreign: str
    language: str
    source: str


def write_demo_corpus(
    out: str | os.PathLike[str], *, sources: Sequence[Source] = SOURCES, overwrite: bool = False
) -> dict:
    """Writes the demo corpus to the folder `out` and returns the content of SOURCES.json.

    A pair that occurs in several packages is attributed to the first.

    Raises:
      InputError: if a package is not installed, or `out` is taken.
    """
    with whole_dir(out, overwrite=overwrite) as folder:
        for source in sources:
            find_folder(source)
        pairs, unknown = collect_pairs(sources)
        messages = {source.distribution for source in sources if source.kind == MESSAGES}
        train, dev = split_pairs(pairs, messages)
        facts = _describe(sources, train, dev, unknown)
        _write_texts(folder, train, dev)
        text = json.dumps(facts, indent=2, ensure_ascii=False)
        (folder / SOURCES_FILE).write_text(text + "\n", encoding="utf-8")
    return facts


def collect_pairs(sources: Sequence[Source]) -> tuple[list[SourcedPair], int]:
    """Returns the distinct clean pairs, and the number of files in unknown languages."""
    files = [(source, *file) for source in sources for file in list_files(source)]
    known = [(source, file, language) for source, file, language in files if language]
    source_of: dict[tuple[str, str, str], str] = {}
    processes = max(1, min(os.cpu_count() or 1, len(known) // _FILES_PER_CALL))
    with (
        # Not by a fork: TensorFlow may be in this process, with threads.
        ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool,
        Progress("demo corpus", total=len(known), unit="file") as progress,
    ):
        places = [file for _, *file in known]
        found = pool.map(_read_clean, places, chunksize=_FILES_PER_CALL)
        for (source, _, language), pairs in zip(known, progress.each(found), strict=True):
            for pair in pairs:
                source_of.setdefault((*pair, language), source.distribution)
    return [SourcedPair(*key, source) for key, source in source_of.items()], len(files) - len(known)


def _read_clean(file: tuple[Path | str, str]) -> list[tuple[str, str]]:
    place, language = file
    pairs = (
        clean_pair(raw.english, raw.foreign, language, number=raw.number)
        for raw in read_raw_pairs(place)
    )
    return [pair for pair in pairs if pair is not None]


@functools.lru_cache(maxsize=1 << 20)
def sentence_key(text: str) -> str:
    """Returns the casefolded letters and marks of `text`, with one space between words."""
    text = unicodedata.normalize("NFKC", _FILLED.sub(" ", text)).casefold()
    return _NO_LETTERS.sub(" ", text).strip()


def hash_key(key: str) -> float:
    """Returns the hash of a key as a number in [0, 1); the same on every machine."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / (1 << 64)


def is_held_out(key: str) -> bool:
    """Tells whether a message with this English key belongs to the held-out pairs."""
    return len(set(key.split())) >= MIN_WORDS and hash_key(key) < HELD_OUT_SHARE


def split_pairs(
    pairs: Iterable[SourcedPair], message_sources: Collection[str]
) -> tuple[list[SourcedPair], list[SourcedPair]]:
    """Returns `(training pairs, held-out pairs)`, each sorted.

    The held-out pairs are messages of at least `MIN_WORDS` different English words, at most
    `MAX_DEV_PAIRS` per language; within a language, no sentence occurs twice on the same side. A
    training pair has no sentence, on either side, that is held out in any language.
    `message_sources` are the sources of messages; others are used for training only.
    """
    pairs = sorted(pairs)
    messages = (pair for pair in pairs if pair.source in message_sources)
    held_english = {key for pair in messages if is_held_out(key := sentence_key(pair.english))}

    rest, held = [], defaultdict(list)
    for pair in pairs:
        if sentence_key(pair.english) not in held_english:
            rest.append(pair)
        elif pair.source in message_sources:
            held[pair.language].append(pair)

    secret = held_english | {sentence_key(p.foreign) for group in held.values() for p in group}
    train = [
        pair
        for pair in rest
        if sentence_key(pair.foreign) not in secret and sentence_key(pair.english) not in secret
    ]
    return train, sorted(pair for group in held.values() for pair in _choose(group))


def _choose(held: list[SourcedPair]) -> list[SourcedPair]:
    """Returns the dev pairs of one language; if there are too many, those with the lowest hash.

    Choosing by hash selects the same messages in every language.
    """
    english_keys, foreign_keys, chosen = set(), set(), []
    for pair in sorted(held, key=lambda pair: (hash_key(sentence_key(pair.english)), pair)):
        english, foreign = sentence_key(pair.english), sentence_key(pair.foreign)
        if english in english_keys or foreign in foreign_keys:
            continue
        english_keys.add(english)
        foreign_keys.add(foreign)
        chosen.append(pair)
    return chosen[:MAX_DEV_PAIRS]


def _describe(
    sources: Sequence[Source], train: list[SourcedPair], dev: list[SourcedPair], unknown: int
) -> dict:
    train_pairs, dev_pairs = (Counter(pair.source for pair in part) for part in (train, dev))
    languages = defaultdict(set)
    for pair in (*train, *dev):
        languages[pair.source].add(pair.language)
    in_train, in_dev = (Counter(pair.language for pair in part) for part in (train, dev))
    return {
        "sources": [
            {
                "package": source.distribution,
                "version": version(source.distribution),
                "licence": find_licence(source),
                "kind": source.kind,
                "train_pairs": train_pairs[source.distribution],
                "dev_pairs": dev_pairs[source.distribution],
                "languages": sorted(languages[source.distribution]),
            }
            for source in sources
        ],
        "train_pairs": len(train),
        "dev_pairs": len(dev),
        "files_in_other_languages": unknown,
        "languages": {
            language: {"train_pairs": in_train[language], "dev_pairs": in_dev[language]}
            for language in sorted({*in_train, *in_dev})
        },
    }


def _write_texts(folder: Path, train: list[SourcedPair], dev: list[SourcedPair]) -> None:
    files = defaultdict(set)
    for name, pairs in (("bitext", train), ("dev", dev)):
        for pair in pairs:
            files[name, f"{pair.language}.tsv.gz"].add(f"{pair.english}\t{pair.foreign}")
    for pair in train:
        files["monolingual", "en.txt.gz"].add(pair.english)
        files["monolingual", f"{pair.language}.txt.gz"].add(pair.foreign)
    for (part, name), lines in files.items():
        (folder / part).mkdir(exist_ok=True)
        data = "".join(f"{line}\n" for line in sorted(lines)).encode()
        # No name or time in the header, so that the same text gives the same bytes.
        (folder / part / name).write_bytes(gzip.compress(data, compresslevel=6, mtime=0))
