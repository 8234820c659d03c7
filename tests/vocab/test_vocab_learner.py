"""The vocabulary learner: worked by hand, against the original, and with refused arguments."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vocab.learner import _index_suffixes, learn


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
    assert learn(words, 10, ["[PAD]", "b"], num_iterations=2, **arguments) == [
        "[PAD]",
        "b",
        "a",
        "aab",
        "##a",
        "##b",
    ]


def test_threshold_zero_keeps_what_ends_no_word():
    words = [("abc", 2), ("d", 0)]
    arguments = {"upper_thresh": 0, "lower_thresh": 0, "num_iterations": 1}
    tokens = learn(words, 100, [], **arguments)
    assert "ab" in tokens
    assert "##bc" in tokens
    assert tokens == ORIGINAL.learn(words, 100, [], **arguments)


ALPHABETS = ["ab", "abc#", "#a", "abcdefgh", "аб#в中", "xyzé😀"]


def random_case(rng):
    """Makes words and arguments for `learn` that reach all its branches, odd ones too."""
    alphabet = rng.choice(ALPHABETS)
    highest = rng.choice([3, 40, 2000])
    shortest = rng.choice([0, 1, 1, 1])
    words = [
        ("".join(rng.choices(alphabet, k=rng.randint(shortest, 9))), rng.randint(0, highest))
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


@pytest.mark.parametrize("seed", range(10))
def test_equals_the_original_on_random_cases(seed):
    rng = random.Random(seed)
    for _ in range(50):
        words, arguments = random_case(rng)
        assert learn(words, **arguments) == ORIGINAL.learn(words, **arguments)


# Latin with combining marks, Cyrillic, Arabic, Devanagari with vowel signs, Thai, Chinese, Hangul,
# the joiner's own character, and characters outside the Basic Multilingual Plane.
SCRIPTS = [
    "ae\u0301\u0308",
    "абё",
    "سلام",
    "कि\u094dत",
    "ไทย\u0e49",
    "中文字",
    "한글",
    "#a",
    "😀𐌰x",
]

WORDS = st.sampled_from(SCRIPTS).flatmap(lambda script: st.text(script, min_size=1, max_size=8))


@pytest.mark.slow
@settings(max_examples=2000)
@given(
    # Few distinct counts, so that many lie right at a threshold, and words that come twice.
    st.lists(st.tuples(WORDS, st.sampled_from([1, 2, 3, 9, 10, 11, 500])), min_size=1, max_size=25),
    st.fixed_dictionaries(
        {
            "vocab_size": st.integers(1, 80),
            "reserved_tokens": st.sampled_from([[], ["[PAD]", "中", "##a"]]),
            "lower_thresh": st.sampled_from([None, 1, 2, 10]),
            "num_iterations": st.integers(1, 4),
            "slack_ratio": st.sampled_from([0.05, 0.0, 0.5]),
            "include_joiner_token": st.booleans(),
            "joiner": st.sampled_from(["##", "", "a"]),
        }
    ),
)
def test_equals_the_original_on_words_of_many_scripts(words, arguments):
    assert learn(words, **arguments) == ORIGINAL.learn(words, **arguments)


# The words, counts and results of the original's own tests; a threshold is fixed by both bounds.
@pytest.mark.parametrize(
    ("words", "threshold", "iterations", "expected"),
    [
        (["apple", "app"], 1, 1, "a e l p app apple le ple pp pple"),
        (["apple", "app"], 1, 2, "a e l p app apple"),
        (["apple", "app", "app"], 2, 1, "a e l p app pp"),
        (["apple", "apple", "peach", "pear"], 1, 4, "a c e h l p r apple peach pear"),
    ],
)
def test_published_cases_of_the_original(words, threshold, iterations, expected):
    arguments = {
        "vocab_size": 10,
        "reserved_tokens": [],
        "upper_thresh": threshold,
        "lower_thresh": threshold,
        "num_iterations": iterations,
        "slack_ratio": 0,
        "include_joiner_token": False,
    }
    assert learn(Counter(words), **arguments) == expected.split()
    assert ORIGINAL.learn(Counter(words), **arguments) == expected.split()


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
        ({"num_iterations": -1}, "num_iterations is -1"),
        ({"max_token_length": 0}, "max_token_length is 0"),
        ({"max_unique_chars": 0}, "max_unique_chars is 0"),
        ({"max_input_tokens": -2}, "max_input_tokens is -2"),
    ],
)
def test_refusals(arguments, message):
    arguments = {"word_counts": {"a": 1}, "vocab_size": 10, "reserved_tokens": []} | arguments
    with pytest.raises(ValueError, match=message):
        learn(**arguments)


def strings(index):
    ends = index.start + index.length
    return [index.text[start:end] for start, end in zip(index.start, ends, strict=True)]


def test_index_of_suffixes_by_hand():
    index = _index_suffixes(["aba", "ab", "ba"])
    found = strings(index)
    # Level 0: what no other suffix begins. Level 1: "aba" and "ab" after "a", "ba" after "b"; but
    # "aba" has the prefixes "ab" and "a": level 2.
    assert found == ["", "a", "b", "ab", "ba", "aba"]
    assert [found[suffix] for suffix in index.prefix] == ["", "", "", "a", "b", "ab"]
    assert index.levels == [0, 3, 5, 6]
    chosen = np.array([False, True, False, False, False, True])
    longest = index.longest_prefix_in(chosen)
    assert [found[suffix] for suffix in longest] == ["", "a", "", "a", "", "aba"]
    index = _index_suffixes([])
    assert strings(index) == [""] and not len(index.word_starts)


@given(st.lists(st.text("ab\0\u0301中😀", max_size=9)))
def test_the_index_holds_every_suffix_and_its_prefixes(words):
    index = _index_suffixes(words)
    found = strings(index)
    expected = {word[start:] for word in words for start in range(len(word) + 1)} | {""}
    assert set(found) == expected
    assert len(found) == len(expected)
    for word, start in zip(words, index.word_starts.tolist(), strict=True):
        assert [found[n] for n in index.at[start : start + len(word) + 1]] == [
            word[cut:] for cut in range(len(word) + 1)
        ]
    for suffix, prefix in zip(found, index.prefix, strict=True):
        shorter = [suffix[:end] for end in range(len(suffix)) if suffix[:end] in expected]
        assert found[prefix] == (shorter[-1] if shorter else "")
