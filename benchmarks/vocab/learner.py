"""The vocabulary learner compared with TF Text's on the same words in one run.

    python -m benchmarks.vocab.learner equality CORPUS...   the same tokens, each corpus at \\
        three sizes
    python -m benchmarks.vocab.learner speed \\
        [TEXT...]      200,000 words to 120,000 tokens (20 minutes)
    python -m benchmarks.vocab.learner full \\
        [TEXT...]       5 million words to 501,153 tokens, ours alone

CORPUS and TEXT are folders of .txt and .tsv files, compressed or not; the default is the text of
the demo corpus. `speed` and `full` use the most frequent words and, if the text has too few,
generate more (`benchmarks/vocab/words.py`).
"""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tensorflow_text.tools.wordpiece_vocab import (  # noqa: E402
    wordpiece_tokenizer_learner_lib as peer,
)

from beam_pipelines.build_vocab import LABSE_VOCAB_SIZE  # noqa: E402
from benchmarks import machine, make_parser  # noqa: E402
from benchmarks.vocab.words import count_words, extend  # noqa: E402
from vocab import learner  # noqa: E402

_EQUALITY_WORDS = (5_000, 20_000, 60_000)
_SETTINGS = {"lower_thresh": 2, "max_unique_chars": 20_000}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("part", choices=["equality", "speed", "full"])
    parser.add_argument("text", nargs="*")
    parser.add_argument("--words", type=int, help="distinct words for speed and full")
    parser.add_argument("--vocab-size", type=int, help="tokens for speed and full")
    args = parser.parse_args()
    print(f"{machine.describe()}, Python {platform.python_version()}")
    if args.part == "equality":
        for corpus in args.text or [None]:
            words = count_words([corpus] if corpus else [])
            for number in _EQUALITY_WORDS:
                _compare(dict(words.most_common(number)), number // 2)
    elif args.part == "speed":
        words = _make_words(args.text, args.words or 200_000)
        _compare(words, args.vocab_size or 120_000)
    else:
        words = _make_words(args.text, args.words or 5_000_000)
        _learn_full(words, args.vocab_size or LABSE_VOCAB_SIZE)


def _make_words(text: list[str], number: int) -> dict[str, int]:
    real = count_words(text)
    words = extend(dict(real.most_common(number)), number)
    print(f"{len(words)} distinct words, {min(len(real), number)} of them real")
    return words


def _compare(words: dict[str, int], vocab_size: int) -> None:
    ours, our_seconds = _timed(learner.learn, words, vocab_size)
    theirs, their_seconds = _timed(peer.learn, words.items(), vocab_size)
    print(
        f"{len(words)} words -> {len(ours)} tokens, the same: {ours == theirs}; TF Text "
        f"{their_seconds:.1f} s, ours {our_seconds:.2f} s: {their_seconds / our_seconds:.0f} times "
        "faster",
        flush=True,
    )


def _timed(learn: Callable, words, vocab_size: int) -> tuple[list[str], float]:
    start = time.perf_counter()
    tokens = learn(words, vocab_size, ["[UNK]"], **_SETTINGS)
    return tokens, time.perf_counter() - start


def _learn_full(words: dict[str, int], vocab_size: int) -> None:
    tokens, seconds = _timed(learner.learn, words, vocab_size)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(words)} words -> {len(tokens)} tokens in {seconds:.0f} s, at most {peak:.1f} GB")


if __name__ == "__main__":
    main()
