"""Each filter on text in many scripts; expected scores worked by hand."""

import doctest
import importlib
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_pipelines.filtering.choose_filters import build_filters, find_filters
from beam_pipelines.filters import find_reasons
from beam_pipelines.filters.lengths import LengthRatio, TooLong, TooShort
from beam_pipelines.filters.shares import FewLetters, Markup
from beam_pipelines.filters.sides import IdenticalSides, NumbersDisagree, SimilarSides
from beam_pipelines.filters.unusual_length import (
    LengthStatistics,
    UnusualLength,
    count_lengths,
    describe_lengths,
    is_finished,
)
from beam_pipelines.filters.wrong_language import WrongLanguage
from beam_pipelines.filters.wrong_script import WrongScript, scripts_of
from beam_pipelines.records import Batch, Document, Pair, Sentence
from labse_tf.files.record_kinds import BITEXT, KINDS
from labse_tf.languages import LANGUAGES

FILTERS = {found for kind in KINDS for found in find_filters(kind)}
NAMES = {record.__name__: record for record in (Document, Pair, Sentence)}


@pytest.mark.parametrize("module", sorted({found.__module__ for found in FILTERS}))
def test_every_filter_shows_an_example_that_is_true(module):
    found = [filter_ for filter_ in FILTERS if filter_.__module__ == module]
    assert all(">>> " in filter_.__doc__ for filter_ in found)
    result = doctest.testmod(importlib.import_module(module), extraglobs=NAMES)
    assert result.attempted >= len(found) and result.failed == 0


def score(filter_, *texts, language="de"):
    [found] = filter_.score([(Sentence, Pair)[len(texts) - 1](*texts, language)])
    return found


def test_scores_and_whether_the_default_accepts_them():
    """One text is a sentence, two are a pair."""
    for filter_, *cases in (
        (
            TooShort(),
            (("",), 0, False),
            (("Guten Tag",), 9, False),
            (("สวัสดีครับ",), 10, True),  # combining vowel signs are characters too
            (("😀" * 10,), 10, True),  # neither bytes nor UTF-16 units
        ),
        (TooLong(), (("я" * 5000,), 5000, True), (("я" * 5001, "short"), 5001, False)),
        (
            LengthRatio(),
            (("Run!", "¡Corre!"), 7 / 4, True),
            (("Red Tide has also been observed in Pasco County.", "።"), 48, False),
            (("a" * 9, "b"), 9, True),
            (("b", "a" * 10), 10, False),
        ),
        (
            IdenticalSides(),
            (("Straße", "STRASSE"), 1, False),
            (("a b", "a\u3000b"), 1, False),
            (("ΟΔΟΣ", "οδος"), 1, False),
        ),
        (
            FewLetters(),
            (("हिन्दी में",), 1, True),
            (("ภาษาไทย",), 1, True),
            (("ትንሣኤ፡ነው",), 6 / 7, True),
            (("12:30–13:45",), 0, False),
            (("٣٤٥",), 0, False),
            (("an English side", "5 km"), 2 / 3, True),
            (("an English side", ""), 0, False),
        ),
        (
            Markup(),
            (("<b> Ja </b>", "Guten Morgen"), 7 / 9, False),  # white space does not count
            (("Good morning", "a < b und c > d"), 0, True),  # a tag begins with a letter
            (("Good morning", "R&amp;D"), 5 / 7, False),
            (("Good morning", "Siehe https://example.com/a"), 21 / 26, False),
            (("Good morning", "{name} fehlt"), 6 / 11, False),
            (("Good morning", "%s fehlt %(count)s"), 11 / 16, False),
            (("Good morning", "${x}"), 1, False),
            (("我在<br/>这里", ""), 5 / 9, False),
            (("Good morning", "Kosten: 100 % mehr"), 0, True),
        ),
        (
            NumbersDisagree(),
            (("Three cats", "3 Katzen"), 1, True),  # spelled out
            (("1,000 people", "1 000 Leute"), 1, True),
            (("10,00,000 rupees", "1000000 Rupien"), 1, True),
            (("in 2019", "२०१९ में"), 1, True),
            (("3000 men", "3 Tausend Mann"), 1, True),  # the same but for zeros
            (("at 2:30", "um 2.30"), 1, True),
            (("on 5 May 2019", "am 5. Mai 2018"), 1 / 2, True),
            (("1, 2 and 3", "1 und 4"), 2 / 5, True),
        ),
        (
            SimilarSides(),
            (("abcdefghijklmno", "ABCDEFGHIJKLMNO"), 1, False),
            (("abcde fghijk lmno!", "“abcde fghijk lmno” 12"), 1, False),
            # 13 trigrams each, of which the last three differ.
            (("copy abcdefghijk", "copy abcdefghxyz"), 10 / 16, False),
            (("Tom Hanks", "Tom Hanks"), 0, True),  # short: a name
            (("今天天气很好我们去公园吧好不好",) * 2, 1, False),
        ),
    ):
        for texts, expected, accepted in cases:
            found = score(filter_, *texts)
            assert found == pytest.approx(expected), (filter_.name, texts)
            assert filter_.accept(found) is accepted, (filter_.name, texts)


def test_wrong_script():
    for language, target, share in (
        ("de", "Доброе утро", 0),
        ("ru", "Wi Fi да", 2 / 6),
        ("ja", "カタカナとひらがなと漢字ー", 1),  # the long vowel mark has no script of its own
        ("ko", "안녕하세요 漢字", 1),
        ("hi", "abcदेव", 2 / 5),  # the vowel sign is a mark, not a letter
        ("sr", "Dobar dan", 1),
        ("ar", "123", 1),
        ("ba", "Хәйерле иртә", 1),
        ("ba", "Guten Morgen", 1),  # Latin letters, which many languages use too
        ("ba", "काम", 0),
        ("crh-Latn", "Сабанъыз хайыр", 0),
        ("aii", "ܫܠܡܐ", 1),  # a language of which no script is known
    ):
        found = score(WrongScript(), "Good morning", target, language=language)
        assert found == pytest.approx(share), language
        assert WrongScript().knows(language) == (language != "aii")
    # English is judged too, and a script of every language is known.
    assert score(WrongScript(), "Доброе утро", "Доброе утро", language="ru") == 0
    assert all(map(scripts_of, LANGUAGES))


PAIRS = {
    "de": "Wir müssen morgen früh aufstehen, weil der Zug schon um sechs fährt.",
    "fr": "Nous devons nous lever tôt demain parce que le train part à six heures.",
    "ru": "Нам нужно встать завтра рано, потому что поезд уходит в шесть часов.",
    "zh": "我们明天要早起，因为火车六点就开了，我们不想错过它。",
    "hi": "हमें कल जल्दी उठना होगा क्योंकि ट्रेन छह बजे निकलती है।",
    "ar": "علينا أن نستيقظ مبكرا غدا لأن القطار يغادر في الساعة السادسة.",
}
ENGLISH_TEXT = "We have to get up early tomorrow because the train leaves at six o'clock."


def accepts(*texts, language):
    return WrongLanguage().accept(score(WrongLanguage(), *texts, language=language))


def test_wrong_language():
    for language, right in PAIRS.items():
        assert accepts(ENGLISH_TEXT, right, language=language)
        assert accepts(ENGLISH_TEXT.upper(), right.upper(), language=language)
        for text in {*PAIRS.values()} - {right}:
            assert not accepts(ENGLISH_TEXT, text, language=language)
            assert not accepts(text, right, language=language)


def test_wrong_language_judges_what_it_knows_and_doubts_little_of_short_or_near_text():
    german = "Das ist ein ganz gewöhnlicher Satz in deutscher Sprache, und er ist lang genug."
    english = "This is a sentence of the usual kind, and it is long enough."
    for language, known in (("ba", True), ("mfe", False), ("arz", False), ("crh-Latn", False)):
        assert WrongLanguage().knows(language) == known
        assert accepts(english, german, language=language) != known
    # The English side is judged in any case.
    assert not accepts(german, german, language="mfe")
    assert score(WrongLanguage(), "Hotel", "Hotel", language="fr") < 0.3
    assert score(WrongLanguage(), "12:30", "", language="fr") == 0
    bosnian = "Moramo sutra rano ustati jer voz polazi u šest sati."
    assert accepts(ENGLISH_TEXT, bosnian, language="hr")


def test_unusual_length():
    learned = {
        "de": LengthStatistics(math.log(2), 1.5, 0.0),
        "th": LengthStatistics(math.log(2), 1.5, 0.8),  # Does without full stops.
    }
    filter_ = UnusualLength().with_learned(learned)
    assert score(filter_, "a" * 100, "b" * 200) == 0
    # The variance is 0.013 + 1 / 200 for text of 200 characters; half of the usual length.
    expected = math.log(2) / (1.5 * math.sqrt(0.018))
    assert score(filter_, "a" * 200, "b" * 200) == pytest.approx(expected)
    assert score(filter_, "a" * 100, "b" * 400) == pytest.approx(expected)
    # Cut off: 1.5 more. A long side without a full stop is no sign of that.
    cut = ("a" * 199 + ".", "b" * 200)
    assert score(filter_, *cut) == pytest.approx(expected + 1.5)
    assert score(filter_, "a" * 200, "b" * 199 + ".") == pytest.approx(expected)
    assert score(filter_, *cut, language="th") == pytest.approx(expected)
    # Nothing is known.
    assert score(filter_, "a" * 200, "b", language="fr") == 0
    assert score(UnusualLength(), "a" * 200, "b") == score(filter_, "", "b") == 0


def batch_of(lengths, end=""):
    return Batch("de", [Pair("a" * source, "b" * target + end, "de") for source, target in lengths])


def describe(batch):
    return dict(describe_lengths(("de", count_lengths(batch)))).get("de")


def test_lengths_are_learned():
    # Targets of twice the length, but for a tenth that are longer still.
    pairs = [Pair("a" * 50 + ".", "b" * 101 + ".", "de")] * 90
    pairs += [Pair("a" * 50 + ".", "b" * 400, "de")] * 10
    # The second is 1: more than half of the ratios are the same.
    expected = (pytest.approx(math.log(2), abs=0.02), 1, pytest.approx(0.1))
    assert describe(Batch("de", pairs)) == expected
    assert describe(Batch("de", pairs[:99])) is None
    # Log ratios 0, 0.131 and -0.128, in bins around 0.01, 0.13 and -0.13: the MAD is 0.12.
    found = describe(batch_of([(100, 100)] * 40 + [(100, 114)] * 30 + [(100, 88)] * 30))
    mean_variance = 0.013 + (70 / 100 + 30 / 114) / 100
    assert found.median == pytest.approx(0.01)
    assert found.spread == pytest.approx(1.4826 * 0.12 / math.sqrt(mean_variance), rel=1e-8)
    for text in ("Good morning.", 'He said "go!"', "他说：“去吧。”", "वह गया।"):
        assert is_finished(text)
    for text in ("Good morning", "สวัสดี", ""):
        assert not is_finished(text)


@settings(max_examples=30)
@given(data=st.data())
def test_any_order_and_any_grouping_give_the_same_sums(data):
    length = st.integers(0, 300)
    lengths = data.draw(st.lists(st.tuples(length, length), min_size=100, max_size=130))
    whole = count_lengths(batch_of(lengths))
    shuffled, size = data.draw(st.permutations(lengths)), data.draw(st.integers(1, 50))
    parts = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    np.testing.assert_array_equal(sum(count_lengths(batch_of(part)) for part in parts), whole)
    # The last number is the sum of 1 / length, each off by half a unit of 2^-32 at most.
    exact = sum(Fraction(1, max(1, *sides)) for sides in lengths)
    assert abs(Fraction(int(whole[-1]), 1 << 32) - exact) <= Fraction(len(lengths), 1 << 33)


TEXTS = st.text(max_size=80)
LANGUAGE_CODES = st.sampled_from(sorted(LANGUAGES))


@settings(max_examples=25)
@given(st.lists(st.builds(Pair, TEXTS, TEXTS, LANGUAGE_CODES), min_size=1, max_size=5))
def test_any_text_has_finite_scores_alone_as_in_a_batch_and_pickled(pairs):
    learned = {code: LengthStatistics(0.1, 1.0, 0.0) for code in LANGUAGES}
    for filter_ in build_filters(BITEXT):
        if hasattr(filter_, "with_learned"):
            filter_ = filter_.with_learned(learned)
        together = list(filter_.score(pairs))
        assert [filter_.score([pair])[0] for pair in pairs] == pytest.approx(together)
        assert all(map(math.isfinite, together))
        again = pickle.loads(pickle.dumps(filter_))
        assert (again.name, again.threshold) == (filter_.name, filter_.threshold)
        assert list(again.score(pairs)) == together


def test_the_first_filter_that_refuses_is_the_reason():
    filters = [TooShort(2), LengthRatio(), IdenticalSides()]
    rows = [("x", "y" * 100), ("xx", "y" * 100), ("xx", "XX"), ("xx", "yy")]
    pairs = [Pair(*row, "de") for row in rows]
    expected = ["too_short", "length_ratio", "identical_sides", None]
    assert find_reasons(filters, pairs) == expected
    assert find_reasons(filters, []) == []
