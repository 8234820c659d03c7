"""Counts words, then learns a WordPiece vocabulary from the counts (paper section 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from beam_pipelines import word_counts
from beam_pipelines.runtime.storage import check_free_path, configure, local_file
from labse_tf.errors import InputError
from labse_tf.files.outputs import check_apart
from vocab import learner, wordpiece_file
from vocab.wordpiece_file import RESERVED_TOKENS

_log = logging.getLogger("labse")

# Size of the published vocabulary, in tokens.
LABSE_VOCAB_SIZE = 501_153

# Pieces must occur twice. The learner's default of 10 leaves small corpora with only characters.
_LOWER_THRESHOLD = 2

# Every character is in the vocabulary twice: at the start of a word and inside one. 20,000 is more
# than Chinese, Japanese and Korean web text and all alphabets use together.
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
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> list[str]:
    """Writes a vocabulary learned from the corpus files in `inputs` to `out`; returns its tokens.

    The arguments are the options of `labse vocab build`: `inputs` are files, folders or globs of
    monolingual text, bitext or both; None for `max_unique_chars` is `default_max_unique_chars`;
    `counts` is a folder to keep the word counts in, see `word_counts.count`; `beam_options` are
    strings, and without them the direct runner is used.

    Raises:
      InputError: for inputs that are missing or damaged, an `out` that exists, or a number out of
        range. Then no vocabulary is written.
    """
    if max_unique_chars is None:
        max_unique_chars = default_max_unique_chars(vocab_size)
    least = len(RESERVED_TOKENS) + 2 * max_unique_chars
    if max_unique_chars < 1 or least > vocab_size:
        problem = f"--vocab-size {vocab_size} is too small for {len(RESERVED_TOKENS)} reserved "
        problem += f"tokens and twice {max_unique_chars} characters"
        raise InputError(problem, remedy="raise it or lower --max-unique-chars")
    if not 0 <= smoothing_exponent <= 1:
        problem = f"--smoothing-exponent is {smoothing_exponent}"
        raise InputError(problem, remedy="give a number from 0 to 1")
    if max_word_length < 1:
        raise InputError(f"--max-word-length is {max_word_length}", remedy="give 1 or more")
    configure(beam_options)
    check_apart(out, inputs, overwrite=overwrite)
    out = check_free_path(out, overwrite=overwrite)
    counted = word_counts.count(
        inputs,
        word_counts.Settings(smoothing_exponent, min_word_count, max_word_length),
        folder=counts,
        beam_options=beam_options,
    )
    _log_counts(counted, max_word_length)
    if not counted.words:
        remedy = "lower --min-word-count or add text"
        raise InputError("no words are left to learn from", remedy=remedy)
    tokens = learner.learn(
        counted.words,
        vocab_size,
        RESERVED_TOKENS,
        upper_thresh=None,
        lower_thresh=_LOWER_THRESHOLD,
        max_token_length=max_word_length,
        max_unique_chars=max_unique_chars,
        progress=lambda line: _log.info("learning: %s", line),
    )
    # The search may end above the size if no threshold meets it. The rarest tokens come last.
    tokens = tokens[:vocab_size]
    with local_file(out, overwrite=overwrite) as partial:
        wordpiece_file.write(partial, tokens)
    _log.info("%s: %d tokens", out, len(tokens))
    return tokens


def _log_counts(counted: word_counts.WordCounts, max_word_length: int) -> None:
    words, languages = sum(counted.tokens.values()), len(counted.tokens)
    _log.info("%d distinct words of %d in %d languages", counted.distinct, words, languages)
    for what, numbers in (
        (f"words of more than {max_word_length} characters", counted.too_long),
        ("records in languages that have no code", counted.other_languages),
    ):
        if numbers:
            most = ", ".join(sorted(numbers, key=numbers.get, reverse=True)[:5])
            _log.info("left out: %d %s, most of them in: %s", sum(numbers.values()), what, most)
