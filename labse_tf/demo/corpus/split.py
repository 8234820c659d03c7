"""Divides clean pairs into training pairs and held-out pairs that share no sentence.

Sentences are compared by `sentence_key`, which keeps letters only: messages that differ in case,
punctuation, digits or a filled placeholder count as the same. The hash of the English key decides,
so a message that is held out in one language is held out in all, even if the corpus grows.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

import regex

HELD_OUT_SHARE = 0.15
MIN_WORDS = 4
MAX_DEV_PAIRS = 500

_FILLED = regex.compile(r"(?<!\p{Latin})[XYZ](?!\p{Latin})")
_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")
_HASH_RANGE = 1 << 64


class SourcedPair(NamedTuple):
    """A clean translation.

    Attributes:
      english: the English side.
      foreign: the other side.
      language: the paper's code of the other side.
      source: the distribution that it comes from.
    """

    english: str
    foreign: str
    language: str
    source: str


@functools.lru_cache(maxsize=1 << 20)
def sentence_key(text: str) -> str:
    """Returns the casefolded letters and marks of `text`, with one space between words."""
    text = unicodedata.normalize("NFKC", _FILLED.sub(" ", text)).casefold()
    return _NO_LETTERS.sub(" ", text).strip()


def hash_key(key: str) -> float:
    """Returns the hash of a key as a number in [0, 1); the same on every machine."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / _HASH_RANGE


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

    Args:
      pairs: all pairs.
      message_sources: the sources whose pairs are messages; others are used for training only.
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
