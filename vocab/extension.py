"""Pieces that a vocabulary lacks for the words of some languages.

A WordPiece vocabulary is learned on the words of these languages alone. Of its pieces that the old
vocabulary lacks, those are taken that shorten the text most: a piece's gain is how often both
vocabularies together use it, times the tokens that it saves each time. The old tokens keep their
ids, so a model's rows keep their places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from vocab.learner import learn
from vocab.smoothing import smoothing_coefficients, weigh_counts
from vocab.wordpiece import JOINER, UNKNOWN, WordPiece, spell

# So many times the wanted number of candidates are learned, and the best kept, a part at a time,
# because a piece is used more when another is gone.
_CANDIDATES = 3
_KEPT_AT_ONCE = 0.8
# A piece that occurs once shortens nothing but itself.
_LEAST_COUNT = 2
_NO_LIMIT = 0x110000


class Spelling(NamedTuple):
    """How a vocabulary spells words: the numbers of words, of their tokens and of `[UNK]`."""

    words: int
    tokens: int
    unknown: int


def find_pieces(
    tokens: Sequence[str],
    word_counts: Mapping[str, Mapping[str, int]],
    add: int,
    *,
    max_bytes_per_word: int,
    smoothing_exponent: float = 0.3,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Returns up to `add` pieces to append to a vocabulary, the most useful first.

    Args:
      tokens: the vocabulary's.
      word_counts: language -> word -> number of occurrences.
      add: number of pieces; there are fewer if no more occur twice.
      max_bytes_per_word: longer words, in UTF-8, are `[UNK]`, so they are not learned from.
      smoothing_exponent: see `smoothing_coefficients`.
      progress: called with a line for each vocabulary that is learned.

    Raises:
      ValueError: if there are no words, or `add` is below 1.
    """
    if add < 1:
        raise ValueError(f"add is {add}; give 1 or more")
    totals = {language: sum(words.values()) for language, words in word_counts.items() if words}
    weighted = weigh_counts(word_counts, smoothing_coefficients(totals, smoothing_exponent))
    words = {word: n for word, n in weighted.items() if len(word.encode()) <= max_bytes_per_word}
    known = frozenset(tokens)
    candidates = _learn_candidates(known, words, _CANDIDATES * add, progress)
    gains = _gains(known, candidates, words, max_bytes_per_word)
    while len(candidates) > add:
        kept = max(add, int(_KEPT_AT_ONCE * len(candidates)))
        candidates = set(sorted(candidates, key=lambda piece: (-gains[piece], piece))[:kept])
        gains = _gains(known, candidates, words, max_bytes_per_word)
    return sorted((one for one in candidates if gains[one] > 0), key=lambda one: (-gains[one], one))


def measure(pieces: WordPiece, words: Mapping[str, int]) -> Spelling:
    """Returns how a vocabulary spells words that occur so many times each."""
    tokens = unknown = 0
    for word, count in words.items():
        split = pieces.split(word)
        tokens += count * len(split)
        unknown += count * (split == (UNKNOWN,))
    return Spelling(sum(words.values()), tokens, unknown)


def _learn_candidates(
    known: Collection[str],
    words: Mapping[str, float],
    wanted: int,
    progress: Callable[[str], None] | None,
) -> set[str]:
    """Returns about `wanted` pieces that are not known, or all that there are."""
    found: set[str] = set()
    size, before = 2 * wanted, -1
    while len(found) < wanted and len(found) > before:
        before = len(found)
        learned = learn(
            words,
            size,
            reserved_tokens=(),
            lower_thresh=_LEAST_COUNT,
            max_unique_chars=_NO_LIMIT,
            max_input_tokens=None,
        )
        found = set(learned) - set(known)
        if progress is not None:
            progress(f"a vocabulary of {len(learned)} has {len(found)} new pieces")
        size *= 2
    return found


def _gains(
    known: frozenset[str], candidates: Collection[str], words: Mapping[str, float], longest: int
) -> dict[str, float]:
    """Returns how many tokens each candidate saves; an unknown word counts a token a character."""
    both = WordPiece(known.union(candidates), max_bytes_per_word=longest)
    used: dict[str, float] = defaultdict(float)
    for word, count in words.items():
        for piece in both.split(word):
            if piece in candidates:
                used[piece] += count
    ids = dict.fromkeys(known, 0)
    gains = {}
    for piece in candidates:
        parts = spell(piece, ids)
        saved = len(piece.removeprefix(JOINER)) if parts is None else len(parts) - 1
        gains[piece] = used[piece] * saved
    return gains
