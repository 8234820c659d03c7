"""The vocabulary learner against TF Text's, on the same words in one run; prints the ratio.

    python -m benchmarks.vocab_learner [--words 20000] [--vocab-size 4000]

The words are those of the demo corpus's packages: the message catalogues of Django.
"""

from __future__ import annotations

import argparse
import collections
import os
import platform
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as peer  # noqa: E402

from labse_tf.corpora.demo import collect_pairs  # noqa: E402
from labse_tf.corpora.packages import SOURCES  # noqa: E402
from vocab import learner  # noqa: E402
from vocab.basic_tokenizer import split_words  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--words", type=int, default=20_000, help="distinct words, the most frequent"
    )
    parser.add_argument("--vocab-size", type=int, default=4_000)
    args = parser.parse_args()
    words = dict(_count_words().most_common(args.words))
    arguments = (words, args.vocab_size, ["[UNK]"])
    settings = {"lower_thresh": 2, "max_unique_chars": 2000}
    start = time.perf_counter()
    ours = learner.learn(*arguments, **settings)
    middle = time.perf_counter()
    theirs = peer.learn(list(words.items()), *arguments[1:], **settings)
    end = time.perf_counter()
    print(
        f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    print(f"{len(words)} words -> {len(ours)} tokens; the same tokens: {ours == theirs}")
    print(f"TF Text {end - middle:.1f} s, ours {middle - start:.1f} s: ", end="")
    print(f"{(end - middle) / (middle - start):.1f} times faster")


def _count_words() -> collections.Counter:
    counts: collections.Counter = collections.Counter()
    pairs, _ = collect_pairs([source for source in SOURCES if source.distribution == "Django"])
    for pair in pairs:
        counts.update(split_words(pair.english))
        counts.update(split_words(pair.foreign))
    return counts


if __name__ == "__main__":
    main()
