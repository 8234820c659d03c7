"""The vocabulary learner: worked by hand, against the original, and with refused arguments."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from pathlib import Path

import pytest

from vocab.learner import learn


def load_original():
    """Loads the original's one file, as importing all of TensorFlow Text takes seconds."""
    package = importlib.util.find_spec("tensorflow_text").submodule_search_locations[0]
    path = Path(package, "tools", "wordpiece_vocab", "wordpiece_tokenizer_learner_lib.py")
    spec = importlib.util.spec_from_file_location("original_learner", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ORIGINAL = load_original()


def test_hand_worked_example():
    # Threshold 3 all through. Round 1 counts the endings from all positions:
    #   aab 3, ab 2 | ##ab 3, ##b 3 + 2 = 5       (kept: aab 3, ##ab 3, ##b 5)
    # Round 2 splits aab as itself, and ab as a ##b:
    #   aab 3, ab 2 | ##b 2                       (kept: aab 3)
    # The characters a, ##a, b and ##b are added with count 1.
    words = {"aab": 3, "ab": 2}
    arguments = {"upper_thresh": 3, "lower_thresh": 3}
    one_round = ["a", "b", "##b", "##ab", "aab", "##a"]
    two_rounds = ["a", "b", "aab", "##a", "##b"]
    assert learn(words, 10, [], num_iterations=1, **arguments) == one_round
    assert learn(words, 10, [], num_iterations=2, **arguments) == two_rounds
    reserved = ["[PAD]", "b"]
    expected = [*reserved, "a", "aab", "##a", "##b"]
    assert learn(words, 10, reserved, num_iterations=2, **arguments) == expected


# Also combining marks, vowel signs, the joiner's own character, and characters outside the Basic
# Multilingual Plane.
ALPHABETS = [
    *("ab", "abc#", "#a", "abcdefgh", "аб#в中", "xyzé😀", "ae\u0301\u0308", "سلام", "कि\u094dत"),
    *("ไทย\u0e49", "한글", "😀𐌰x"),
]


def random_case(rng):
    """Makes words and arguments for `learn` that reach all its branches, odd ones too."""
    alphabet = rng.choice(ALPHABETS)
    # Few distinct counts, so that many lie right at a threshold; and words that come twice.
    counts = rng.choice([range(4), range(41), range(2001), (1, 2, 3, 9, 10, 11, 500)])
    shortest = rng.choice([0, 1, 1, 1])
    words = [
        ("".join(rng.choices(alphabet, k=rng.randint(shortest, 9))), rng.choice(counts))
        for _ in range(rng.randint(1, 40))
    ]
    arguments = {
        "vocab_size": rng.randint(1, 120),
        "reserved_tokens": rng.choice([[], ["[PAD]", "ab"], ["a", "##b", "a"], ("##",)]),
        "upper_thresh": rng.choice([None, 10_000_000, 50, 5, 0, -7]),
        "lower_thresh": rng.choice([None, 10, 3, 1, 0, -5]),
        "num_iterations": rng.choice([0, 1, 2, 4, 5]),
        "max_input_tokens": rng.choice([-1, 5_000_000, 10, 1, 0]),
        "max_token_length": rng.choice([50, 9, 4, 1]),
        "max_unique_chars": rng.choice([1000, 3, 2, 1]),
        "slack_ratio": rng.choice([0.05, 0, -1, 0.5]),
        "include_joiner_token": rng.random() < 0.7,
        "joiner": rng.choice(["##", "##", "##", "#", "", "@@", "a"]),
    }
    return words, arguments


@pytest.mark.parametrize("cases", [500, pytest.param(4000, marks=pytest.mark.slow)])
def test_equals_the_original_on_random_cases(cases):
    rng = random.Random(cases)
    for _ in range(cases):
        words, arguments = random_case(rng)
        assert learn(words, **arguments) == ORIGINAL.learn(words, **arguments)


def test_equals_the_original_with_default_arguments_on_its_text():
    words = Counter(Path(ORIGINAL.__file__).read_text(encoding="utf-8").split()[:500])
    expected = ORIGINAL.learn(words, 300, ["[PAD]", "[UNK]"], lower_thresh=1)
    assert learn(words, 300, ["[PAD]", "[UNK]"], lower_thresh=1) == expected


def test_words_may_come_in_any_form_and_without_a_limit():
    pairs = [("ab", 12), ("abc", 30), ("b", 11)]
    expected = learn(pairs, 20, [], max_input_tokens=-1)
    for words in (dict(pairs), Counter(dict(pairs)), iter(pairs)):
        assert learn(words, 20, []) == expected
    assert learn(pairs, 20, [], max_input_tokens=None) == expected
    assert learn(pairs, 20, [], max_input_tokens=1) != expected


def test_progress_gets_a_line_for_each_threshold_that_could_fit():
    lines = []
    tokens = learn({"ab": 64, "cd": 16}, 1000, [], lower_thresh=1, progress=lines.append)
    # The thresholds above cannot give 950 tokens from so few words: passed over.
    assert lines == [f"threshold 15: {len(tokens)} tokens"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"word_counts": {}}, "word_counts is empty"),
        ({"word_counts": {"a": -1}}, "the word 'a' has the count -1"),
        ({"word_counts": {"a": float("nan")}}, "the word 'a' has the count nan"),
        ({"word_counts": {"a": float("inf")}}, "the word 'a' has the count inf"),
        ({"word_counts": {b"a": 1}}, "the word b'a' is not a str"),
        ({"reserved_tokens": "[PAD]"}, "reserved_tokens is one str"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"max_input_tokens": -2}, "max_input_tokens is -2"),
    ],
)
def test_refusals(arguments, message):
    arguments = {"word_counts": {"a": 1}, "vocab_size": 10, "reserved_tokens": []} | arguments
    with pytest.raises(ValueError, match=message):
        learn(**arguments)
