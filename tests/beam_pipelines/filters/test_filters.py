"""Each filter on real text in many scripts."""

import pytest

from beam_pipelines.filters import find_reasons
from beam_pipelines.filters.few_letters import FewLetters
from beam_pipelines.filters.identical_sides import IdenticalSides
from beam_pipelines.filters.length_ratio import LengthRatio
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.records.records import Pair, Sentence


def check(filter_, record, score, accepted):
    assert filter_.score([record]) == [pytest.approx(score)]
    assert filter_.accept(filter_.score([record])[0]) is accepted


@pytest.mark.parametrize(
    ("text", "score", "accepted"),
    [
        ("", 0, False),
        ("Guten Tag", 9, False),
        ("Guten Tag!", 10, True),
        ("今日は天気がいいです", 10, True),
        ("今日は天気がいいね", 9, False),
        ("สวัสดีครับ", 10, True),  # combining vowel signs count: they are characters too
        ("नमस्ते दोस्त", 12, True),
        ("😀" * 10, 10, True),  # characters, neither bytes nor UTF-16 units
    ],
)
def test_too_short_monolingual(text, score, accepted):
    check(TooShort(), Sentence(text, "xx"), score, accepted)


def test_too_short_takes_the_shorter_side():
    check(TooShort(2), Pair("Run!", "跑", "zh"), 1, False)
    check(TooShort(2), Pair("Go.", "去。", "zh"), 2, True)


@pytest.mark.parametrize(("length", "accepted"), [(4999, True), (5000, True), (5001, False)])
def test_too_long(length, accepted):
    check(TooLong(), Sentence("я" * length, "ru"), length, accepted)
    check(TooLong(), Pair("short", "я" * length, "ru"), length, accepted)
    check(TooLong(), Pair("я" * length, "short", "ru"), length, accepted)


@pytest.mark.parametrize(
    ("source", "target", "score", "accepted"),
    [
        ("It is a privilege to meet you.", "幸会幸会。", 30 / 5, True),
        ("Run!", "¡Corre!", 7 / 4, True),
        ("Red Tide has also been observed in Pasco County.", "።", 48, False),
        ("a" * 9, "b", 9, True),
        ("b", "a" * 10, 10, False),
    ],
)
def test_length_ratio(source, target, score, accepted):
    check(LengthRatio(), Pair(source, target, "xx"), score, accepted)


@pytest.mark.parametrize(
    ("source", "target", "accepted"),
    [
        ("Paris", "Paris", False),
        ("PARIS", "paris", False),
        ("Straße", "STRASSE", False),
        ("a b", "a\u3000b", False),
        ("ΟΔΟΣ", "οδος", False),
        ("Paris", "Париж", True),
        ("Tom", "Tom.", True),
    ],
)
def test_identical_sides(source, target, accepted):
    check(IdenticalSides(), Pair(source, target, "xx"), float(not accepted), accepted)


@pytest.mark.parametrize(
    ("text", "score", "accepted"),
    [
        ("हिन्दी में", 1, True),
        ("ภาษาไทย", 1, True),
        ("ትንሣኤ፡ነው", 6 / 7, True),
        ("12:30–13:45", 0, False),
        ("---- *** ----", 0, False),
        ("٣٤٥", 0, False),
        ("5 km", 2 / 3, True),
        ("1234567890 km", 2 / 12, False),
        ("", 0, False),
    ],
)
def test_few_letters(text, score, accepted):
    check(FewLetters(), Sentence(text, "xx"), score, accepted)
    check(FewLetters(), Pair("an English side", text, "xx"), score, accepted)


def test_the_first_filter_that_refuses_is_the_reason():
    filters = [TooShort(2), LengthRatio(), IdenticalSides()]
    pairs = [
        Pair("x", "y" * 100, "xx"),
        Pair("xx", "y" * 100, "xx"),
        Pair("xx", "XX", "xx"),
        Pair("xx", "yy", "xx"),
    ]
    expected = ["too_short", "length_ratio", "identical_sides", None]
    assert find_reasons(filters, pairs) == expected
    assert find_reasons(filters, []) == []


def test_defaults_are_those_of_the_paper():
    assert (TooShort().threshold, TooLong().threshold) == (10, 5000)
