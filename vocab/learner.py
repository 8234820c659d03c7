"""Learns a WordPiece vocabulary from word counts.

The result is that of TF Text's `wordpiece_tokenizer_learner_lib.learn`, token for token, found
in much less time.

The algorithm searches for the count threshold that gives a vocabulary of about the requested
size. For each threshold it runs a few iterations. Each splits all words with the pieces found so
far, then counts every piece of text that begins where a split piece begins, and keeps it if its
count reaches the threshold.

The time is saved in counting. TF Text counts each candidate at all its occurrences and then, from
the longest to the shortest, subtracts a candidate's adjusted count from all of its prefixes,
whether the candidate is kept or not. Write raw(x) for the occurrences of x and
adj(x) for its adjusted count. Then adj(x) = raw(x) - sum of adj(y) over the longer y that begin
with x, that is, raw(x) is the sum of adj over x and all its extensions. The same holds for each
x + c, where c is one more character, so

    adj(x) = raw(x) - sum over c of raw(x + c)

which is the number of occurrences of x that no character follows: those at the END of a word.
So only the suffixes of words need to be counted, not all substrings, and nothing is subtracted.

The distinct suffixes are indexed once (`suffix_index`); a piece is then a number, and its count an
element of an array. Splitting needs the longest piece that is a prefix of the rest of a word. Both
the piece and the rest are suffixes, so this is an array too, computed for all words at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from vocab.piece_counter import PieceCounter, WordCounts


def learn(
    word_counts: Mapping[str, float] | Iterable[tuple[str, float]],
    vocab_size: int,
    reserved_tokens: Sequence[str],
    upper_thresh: int | None = int(1e7),
    lower_thresh: int | None = 10,
    num_iterations: int = 4,
    max_input_tokens: int | None = int(5e6),
    max_token_length: int = 50,
    max_unique_chars: int = 1000,
    slack_ratio: float = 0.05,
    include_joiner_token: bool = True,
    joiner: str = "##",
    *,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Returns a WordPiece vocabulary of about `vocab_size` tokens.

    The order is: the reserved tokens, the single characters by code point, then the pieces by
    descending count and, at equal counts, by code point.

    With integer counts the result equals that of TF Text exactly (while their sum is below 2**63).
    Fractional counts are accepted too; there the sums may round differently.

    Args:
      word_counts: word -> number of occurrences, or pairs of them. A word may come in several
        pairs. At equal counts, earlier words are preferred under `max_input_tokens`.
      vocab_size: the target size, in tokens. The search ends at the first threshold whose
        vocabulary has at most this size and is at most `slack_ratio` of it smaller. If there is
        none, the result is that of the last threshold tried, which may be larger.
      reserved_tokens: tokens to put first, whatever the words are. Words equal to one of them
        are not learned from.
      upper_thresh: upper end of the threshold search; the largest count of a word if that is
        less, or if None.
      lower_thresh: lower end of the threshold search; the smallest count of a word if that is
        more, or if None.
      num_iterations: rounds of split-and-count for each threshold; with 0 the vocabulary is
        the reserved tokens and the characters.
      max_input_tokens: number of words to learn from, the most frequent first; None or -1 for
        no limit.
      max_token_length: longest word to learn from, in characters (code points).
      max_unique_chars: size of the alphabet, most frequent characters first; words with other
        characters are left out.
      slack_ratio: see `vocab_size`; below 0 means 0.
      include_joiner_token: whether pieces inside a word are distinguished by the joiner.
      joiner: prefix of a piece that does not begin a word.
      progress: called with a short line for each threshold tried.

    Raises:
      ValueError: if there are no words, a word is not a str, `reserved_tokens` is one str, a
        number is out of range, or the words have 2**31 characters or more.
    """
    pairs = list(word_counts.items() if isinstance(word_counts, Mapping) else word_counts)
    _check_words(pairs, reserved_tokens)
    _check_numbers(vocab_size, num_iterations, max_input_tokens, max_token_length, max_unique_chars)
    # The search range depends on all words, including those that are filtered out.
    lower, upper = _threshold_range(pairs, lower_thresh, upper_thresh)
    reserved = set(reserved_tokens)
    pairs = [pair for pair in pairs if len(pair[0]) <= max_token_length and pair[0] not in reserved]
    words = _select_words(pairs, max_unique_chars, max_input_tokens)
    alphabet = sorted({char for word, _ in words for char in word})
    joiner = joiner if include_joiner_token else ""
    if not words or not num_iterations:
        return _in_order(reserved_tokens, alphabet, _with_alphabet({}, alphabet, joiner))
    counter = PieceCounter(words, joiner)
    fixed = {*reserved_tokens, *_with_alphabet({}, alphabet, joiner)}
    slack = max(slack_ratio * vocab_size, 0)

    while True:
        threshold = (upper + lower) // 2
        last = lower >= upper or threshold <= 1
        most = len(fixed) + counter.most_pieces(threshold)
        if not last and vocab_size - most > slack:
            # Certainly too small: lower the threshold without learning at this one.
            upper = threshold - 1
            continue
        if threshold > 0:
            pieces = counter.learn_at(threshold, num_iterations)
        else:
            pieces = _all_pieces(words, num_iterations, joiner)
        size = len(fixed.union(pieces))
        if progress is not None:
            progress(f"threshold {threshold}: {size} tokens")
        missing = vocab_size - size
        if 0 <= missing <= slack or last:
            return _in_order(reserved_tokens, alphabet, _with_alphabet(pieces, alphabet, joiner))
        if missing < 0:
            lower = threshold + 1
        else:
            upper = threshold - 1


def _all_pieces(words: WordCounts, num_iterations: int, joiner: str) -> dict[str, int]:
    """Returns the result of `PieceCounter.learn_at` for a threshold of 0 or less.

    All substrings of words are then pieces in the first iteration, with count 0 if they end no
    word. So later iterations do not split the words and find only their prefixes.
    """
    pieces: dict[str, int] = {}
    inner: dict[str, int] = {}
    for word, count in words:
        for start in range(len(word) if num_iterations == 1 else 1):
            group, before = (inner, joiner) if start and joiner else (pieces, "")
            for end in range(start + 1, len(word)):
                group.setdefault(before + word[start:end], 0)
            if word:
                whole = before + word[start:]
                group[whole] = group.get(whole, 0) + count
    return {**pieces, **inner}


def _with_alphabet(pieces: dict[str, int], alphabet: list[str], joiner: str) -> dict[str, int]:
    """Adds missing characters as pieces with count 1, so that all words can be split."""
    for char in alphabet:
        pieces.setdefault(char, 1)
        pieces.setdefault(joiner + char, 1)
    return pieces


def _in_order(
    reserved_tokens: Sequence[str], alphabet: list[str], pieces: dict[str, int]
) -> list[str]:
    """Returns the vocabulary in its final order, each token once."""
    by_count = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
    return list(dict.fromkeys([*reserved_tokens, *alphabet, *by_count]))


def _threshold_range(
    pairs: WordCounts, lower_thresh: int | None, upper_thresh: int | None
) -> tuple[int, int]:
    """Returns the ends of the threshold search, lower first.

    The lower end can be the larger one, if all counts are small; then one threshold is tried.
    """
    counts = [count for _, count in pairs]
    lower = min(counts) if lower_thresh is None else max(min(counts), lower_thresh)
    upper = max(counts) if upper_thresh is None else min(max(counts), upper_thresh)
    return lower, upper


def _select_words(
    pairs: WordCounts, max_unique_chars: int, max_input_tokens: int | None
) -> WordCounts:
    """Returns the words made of the most frequent characters, most frequent words first."""
    char_counts: Counter[str] = Counter()
    for word, count in pairs:
        for char in word:
            char_counts[char] += count
    by_count = sorted(char_counts, key=lambda char: (-char_counts[char], char))
    allowed = set(by_count[:max_unique_chars])
    words = [pair for pair in pairs if allowed.issuperset(pair[0])]
    words.sort(key=lambda pair: pair[1], reverse=True)  # Stable: equal counts keep their order.
    return words if max_input_tokens in (None, -1) else words[:max_input_tokens]


def _check_words(pairs: WordCounts, reserved_tokens: Sequence[str]) -> None:
    """Refuses words and reserved tokens of the wrong type, and invalid counts."""
    if not pairs:
        raise ValueError("word_counts is empty; give at least one word with its count")
    for word, count in pairs:
        if not isinstance(word, str):
            raise ValueError(f"the word {word!r} is not a str; decode bytes first")
        if not 0 <= count < math.inf:  # NaN too: with it the search would never end
            raise ValueError(f"the word {word!r} has the count {count}; give 0 or more")
    if isinstance(reserved_tokens, str):
        raise ValueError("reserved_tokens is one str; give a list of tokens")


def _check_numbers(
    vocab_size: int,
    num_iterations: int,
    max_input_tokens: int | None,
    max_token_length: int,
    max_unique_chars: int,
) -> None:
    """Refuses sizes out of range."""
    for name, value, least in [
        ("vocab_size", vocab_size, 1),
        ("num_iterations", num_iterations, 0),
        ("max_token_length", max_token_length, 1),
        ("max_unique_chars", max_unique_chars, 1),
        ("max_input_tokens", -1 if max_input_tokens is None else max_input_tokens, -1),
    ]:
        if value < least:
            raise ValueError(f"{name} is {value}; give {least} or more")
