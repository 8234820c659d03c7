"""Counts words, then learns a WordPiece vocabulary from the counts (paper section 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from beam_pipelines.counting import word_counts
from beam_pipelines.runtime.storage import check_free_path, configure, local_file
from labse_tf.errors import InputError
from labse_tf.files.outputs import check_apart
from vocab import learner, wordpiece_file

_log = logging.getLogger("labse")

# Size of the published vocabulary, in tokens.
LABSE_VOCAB_SIZE = 501_153

# Pieces must occur twice. The learner's default of 10 leaves small corpora with only characters.
_LOWER_THRESHOLD = 2

# The learner uses only this many of the most frequent words, so no more are read into memory.
_MAX_WORDS = 5_000_000

# Every character is in the vocabulary twice: at the start of a word and inside one. So an alphabet
# of an eighth of the vocabulary's size takes up a quarter of it. 20,000 is more than Chinese,
# Japanese and Korean web text and all alphabets use together.
_MAX_ALPHABET = 20_000
_ALPHABET_SHARE = 1 / 8


def default_max_unique_chars(vocab_size: int) -> int:
    """Returns the maximum number of distinct characters for a vocabulary of this many tokens."""
    return min(_MAX_ALPHABET, int(vocab_size * _ALPHABET_SHARE))


def run(
    inputs: Sequence[str],
    out: str,
    *,
    vocab_size: int = LABSE_VOCAB_SIZE,
    smoothing_exponent: float = 0.3,
    min_word_count: int = 1,
    max_word_length: int = 50,
    max_unique_chars: int | None = None,
    counts: str | None = None,
    count_shards: int | None = None,
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> list[str]:
    """Writes a vocabulary learned from the corpus files in `inputs` to `out`; returns its tokens.

    Args:
      inputs: files, folders or globs; monolingual text, bitext or both.
      out: the file to write, one token per line.
      vocab_size: the maximum number of tokens.
      smoothing_exponent: 0 (all languages weigh the same) to 1 (in proportion to their text).
      min_word_count: words with a lower smoothed count are ignored.
      max_word_length: in characters; longer words are ignored.
      max_unique_chars: the maximum number of distinct characters; words with any other, rarer
        character are ignored. None: `default_max_unique_chars`.
      counts: a folder to keep the word counts in; counts that are already there are reused. See
        `word_counts.count`.
      count_shards: number of files that the words are counted into; None: depends on the size of
        the input. A worker holds the words of one shard in memory.
      overwrite: replace an existing `out`.
      beam_options: options for Beam, as strings; if empty, the direct runner is used.

    Raises:
      InputError: for inputs that are missing or damaged, an `out` that exists, or a number out of
        range. Then no vocabulary is written.
    """
    if max_unique_chars is None:
        max_unique_chars = default_max_unique_chars(vocab_size)
    _check_numbers(vocab_size, smoothing_exponent, max_unique_chars, max_word_length)
    if count_shards is not None and count_shards < 1:
        raise InputError(f"--count-shards is {count_shards}", remedy="give 1 or more")
    configure(beam_options)
    check_apart(out, inputs, overwrite=overwrite)
    out = check_free_path(out, overwrite=overwrite)
    counted = word_counts.count(
        inputs,
        word_counts.Settings(smoothing_exponent, min_word_count, max_word_length),
        folder=counts,
        shards=count_shards,
        max_words=_MAX_WORDS,
        beam_options=beam_options,
    )
    _log_counts(counted, max_word_length)
    if not counted.words:
        raise InputError(
            "no words are left to learn from", remedy="lower --min-word-count or add text"
        )
    tokens = _learn(counted.words, vocab_size, max_word_length, max_unique_chars)
    with local_file(out, overwrite=overwrite) as partial:
        wordpiece_file.write(partial, tokens)
    _log.info("%s: %d tokens", out, len(tokens))
    return tokens


def _learn(
    words: Mapping[str, int], vocab_size: int, max_word_length: int, max_unique_chars: int
) -> list[str]:
    """Returns at most `vocab_size` tokens."""
    tokens = learner.learn(
        words,
        vocab_size,
        wordpiece_file.RESERVED_TOKENS,
        upper_thresh=None,
        lower_thresh=_LOWER_THRESHOLD,
        max_token_length=max_word_length,
        max_unique_chars=max_unique_chars,
        max_input_tokens=_MAX_WORDS,
        progress=lambda line: _log.info("learning: %s", line),
    )
    # The search may end above the size if no threshold meets it. The rarest tokens come last.
    return tokens[:vocab_size]


def _check_numbers(
    vocab_size: int, smoothing_exponent: float, max_unique_chars: int, max_word_length: int
) -> None:
    least = len(wordpiece_file.RESERVED_TOKENS) + 2 * max_unique_chars
    if max_unique_chars < 1 or least > vocab_size:
        raise InputError(
            f"--vocab-size {vocab_size} is too small for {len(wordpiece_file.RESERVED_TOKENS)} "
            f"reserved tokens and twice {max_unique_chars} characters",
            remedy="raise it or lower --max-unique-chars",
        )
    if not 0 <= smoothing_exponent <= 1:
        raise InputError(
            f"--smoothing-exponent is {smoothing_exponent}", remedy="give a number from 0 to 1"
        )
    if max_word_length < 1:
        raise InputError(f"--max-word-length is {max_word_length}", remedy="give 1 or more")


def _log_counts(counted: word_counts.WordCounts, max_word_length: int) -> None:
    _log.info(
        "%d distinct words of %d in %d languages",
        counted.distinct,
        sum(counted.tokens.values()),
        len(counted.tokens),
    )
    if counted.too_long:
        _log.info(
            "left out: %d words of more than %d characters, most of them in: %s",
            sum(counted.too_long.values()),
            max_word_length,
            _most(counted.too_long),
        )
    if counted.other_languages:
        _log.info(
            "left out: %d records in languages that have no code, most of them in: %s",
            sum(counted.other_languages.values()),
            _most(counted.other_languages),
        )


def _most(numbers: Mapping[str, int]) -> str:
    return ", ".join(sorted(numbers, key=numbers.get, reverse=True)[:5])
