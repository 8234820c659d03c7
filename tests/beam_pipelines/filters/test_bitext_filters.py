"""The filters of translation pairs on text in many scripts; expected scores worked by hand."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines.filtering.choose_filters import build_filters
from beam_pipelines.filters.markup import Markup
from beam_pipelines.filters.numbers_disagree import NumbersDisagree
from beam_pipelines.filters.similar_sides import SimilarSides
from beam_pipelines.filters.unusual_length import UnusualLength
from beam_pipelines.filters.wrong_language import WrongLanguage
from beam_pipelines.filters.wrong_script import WrongScript, scripts_of
from beam_pipelines.records.records import Batch, Pair
from beam_pipelines.text.learn_lengths import describe_lengths
from beam_pipelines.text.length_statistics import LengthStatistics, expected_deviation, is_finished
from labse_tf.files.record_kinds import BITEXT
from labse_tf.languages import LANGUAGES


def score(filter_, source, target, language="de"):
    [found] = filter_.score([Pair(source, target, language)])
    return found


@pytest.mark.parametrize(
    ("target", "share"),
    [
        ("Guten Morgen", 0),
        ("<b>Ja</b>", 7 / 9),
        ("<b> Ja </b>", 7 / 9),  # white space does not count
        ("a < b und c > d", 0),  # a tag begins with a letter
        ("R&amp;D", 5 / 7),
        ("Siehe https://example.com/a", 21 / 26),
        ("{name} fehlt", 6 / 11),
        ("%s fehlt %(count)s", 11 / 16),
        ("${x}", 1),
        ("我在<br/>这里", 5 / 9),
        ("Kosten: 100 % mehr", 0),
        ("", 0),
    ],
)
def test_markup(target, share):
    assert score(Markup(), "Good morning", target) == pytest.approx(share)
    assert score(Markup(), target, "Good morning") == pytest.approx(share)


@pytest.mark.parametrize(
    ("source", "target", "agreement"),
    [
        ("No numbers.", "Keine Zahlen.", 1),
        ("Three cats", "3 Katzen", 1),  # spelled out
        ("1,000 people", "1.000 Leute", 1),
        ("1,000 people", "1 000 Leute", 1),
        ("10,00,000 rupees", "1000000 Rupien", 1),
        ("in 2019", "في عام ٢٠١٩", 1),
        ("in 2019", "२०१९ में", 1),
        ("3000 men", "3 Tausend Mann", 1),  # the same but for zeros
        ("at 2:30", "um 2.30", 1),
        ("on 5 May 2019", "am 5. Mai 2018", 1 / 2),
        ("80 degrees", "27 Grad", 0),
        ("1, 2 and 3", "1 und 4", 2 / 5),
    ],
)
def test_numbers_disagree(source, target, agreement):
    assert score(NumbersDisagree(), source, target) == pytest.approx(agreement)


@pytest.mark.parametrize(
    ("language", "target", "share"),
    [
        ("de", "Guten Morgen", 1),
        ("de", "Доброе утро", 0),
        ("ru", "Доброе утро", 1),
        ("ru", "Wi Fi да", 2 / 6),
        ("ja", "カタカナとひらがなと漢字ー", 1),  # the long vowel mark has no script of its own
        ("ja", "안녕하세요", 0),
        ("ko", "안녕하세요 漢字", 1),
        ("hi", "नमस्ते", 1),
        ("hi", "abcदेव", 2 / 5),  # the vowel sign is a mark, not a letter
        ("sr", "Dobar dan", 1),
        ("sr", "Добар дан", 1),
        ("mk", "Dobar den", 0),
        ("ar", "123", 1),
    ],
)
def test_wrong_script(language, target, share):
    assert score(WrongScript(), "Good morning", target, language) == pytest.approx(share)


def test_wrong_script_looks_at_the_english_side_too():
    assert score(WrongScript(), "Доброе утро", "Доброе утро", "ru") == 0


@pytest.mark.parametrize(
    ("language", "target", "share"),
    [
        ("ba", "Хәйерле иртә", 1),
        ("ba", "Guten Morgen", 1),  # Latin letters, which many languages use too
        ("ba", "काम", 0),
        ("crh-Latn", "Сабанъыз хайыр", 0),
        ("crh-Latn", "Sabanız hayır", 1),
        ("mfe", "Хәйерле", 0),
        ("aii", "ܫܠܡܐ", 1),  # of which no script is known
    ],
)
def test_scripts_of_other_languages(language, target, share):
    assert score(WrongScript(), "Good morning", target, language) == share
    assert WrongScript().knows(language) == (language != "aii")


def test_every_language_has_scripts_that_unicode_knows():
    for language in LANGUAGES:
        assert scripts_of(language)
        assert 0 <= score(WrongScript(), "x", "я", language) <= 1


@pytest.mark.parametrize(
    ("source", "target", "similarity"),
    [
        ("abcdefghijklmno", "ABCDEFGHIJKLMNO", 1),
        ("abcde fghijk lmno!", "“abcde fghijk lmno” 12", 1),
        # 13 trigrams each, of which the last three differ.
        ("copy abcdefghijk", "copy abcdefghxyz", 10 / 16),
        ("Tom Hanks", "Tom Hanks", 0),  # short: a name
        ("We saw the old town", "Wir sahen die alte Stadt", 0),
        ("今天天气很好我们去公园吧好不好", "今天天气很好我们去公园吧好不好", 1),
    ],
)
def test_similar_sides(source, target, similarity):
    assert score(SimilarSides(), source, target) == pytest.approx(similarity)


PAIRS = {
    "de": "Wir müssen morgen früh aufstehen, weil der Zug schon um sechs fährt.",
    "fr": "Nous devons nous lever tôt demain parce que le train part à six heures.",
    "ru": "Нам нужно встать завтра рано, потому что поезд уходит в шесть часов.",
    "zh": "我们明天要早起，因为火车六点就开了，我们不想错过它。",
    "hi": "हमें कल जल्दी उठना होगा क्योंकि ट्रेन छह बजे निकलती है।",
    "ar": "علينا أن نستيقظ مبكرا غدا لأن القطار يغادر في الساعة السادسة.",
}
ENGLISH_TEXT = "We have to get up early tomorrow because the train leaves at six o'clock."


@pytest.mark.parametrize("language", PAIRS)
def test_wrong_language(language):
    filter_ = WrongLanguage()
    assert filter_.accept(score(filter_, ENGLISH_TEXT, PAIRS[language], language))
    assert filter_.accept(score(filter_, ENGLISH_TEXT.upper(), PAIRS[language].upper(), language))
    for other, text in PAIRS.items():
        if other != language:
            assert not filter_.accept(score(filter_, ENGLISH_TEXT, text, language))
            assert not filter_.accept(score(filter_, text, PAIRS[language], language))


def test_only_languages_that_the_model_knows_are_judged():
    german = "Das ist ein ganz gewöhnlicher Satz in deutscher Sprache, und er ist lang genug."
    english = "This is a sentence of the usual kind, and it is long enough."
    for language, known in (("ba", True), ("mfe", False), ("arz", False), ("crh-Latn", False)):
        assert WrongLanguage().knows(language) == known
        found = score(WrongLanguage(), english, german, language)
        assert WrongLanguage().accept(found) != known
    # The English side is.
    assert not WrongLanguage().accept(score(WrongLanguage(), german, german, "mfe"))


def test_wrong_language_knows_little_of_short_text_and_of_near_languages():
    filter_ = WrongLanguage()
    assert score(filter_, "Hotel", "Hotel", "fr") < 0.3
    assert score(filter_, "12:30", "", "fr") == 0
    bosnian = "Moramo sutra rano ustati jer voz polazi u šest sati."
    assert filter_.accept(score(filter_, ENGLISH_TEXT, bosnian, "hr"))


def test_lengths_are_learnt_of_a_language():
    """Targets of twice the length, but for a tenth that are longer still."""
    pairs = [Pair("a" * 50 + ".", "b" * 101 + ".", "de")] * 90
    pairs += [Pair("a" * 50 + ".", "b" * 400, "de")] * 10
    found = describe_lengths(Batch("de", pairs))
    assert found.median == pytest.approx(math.log(2), abs=0.02)
    assert found.spread == 1  # more than half of the ratios are the same
    assert found.unfinished_share == pytest.approx(0.1)
    assert describe_lengths(Batch("de", pairs[:99])) is None


def test_unusual_length():
    learned = {"de": LengthStatistics(math.log(2), 1.5, 0.0)}
    filter_ = UnusualLength().with_learned(learned)
    assert score(filter_, "a" * 100, "b" * 200) == 0
    # The variance is 0.013 + 1 / 200 for text of 200 characters; half of what is usual.
    expected = math.log(2) / (1.5 * math.sqrt(0.018))
    assert score(filter_, "a" * 200, "b" * 200) == pytest.approx(expected)
    assert score(filter_, "a" * 100, "b" * 400) == pytest.approx(expected)
    # Cut off: 1.5 more. A long side without a full stop is no sign of that.
    assert score(filter_, "a" * 199 + ".", "b" * 200) == pytest.approx(expected + 1.5)
    assert score(filter_, "a" * 200, "b" * 199 + ".") == pytest.approx(expected)
    # Languages that do without full stops.
    without = UnusualLength().with_learned({"th": LengthStatistics(math.log(2), 1.5, 0.8)})
    assert score(without, "a" * 199 + ".", "b" * 200, "th") == pytest.approx(expected)
    # Nothing is known.
    assert score(filter_, "a" * 200, "b", "fr") == 0
    assert score(UnusualLength(), "a" * 200, "b") == 0
    assert score(filter_, "", "b") == 0


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("Good morning.", True),
        ('He said "go!"', True),
        ("他说：“去吧。”", True),
        ("वह गया।", True),
        ("Good morning", False),
        ("สวัสดี", False),
        ("", False),
    ],
)
def test_is_finished(text, finished):
    assert is_finished(text) is finished


def test_longer_text_strays_less():
    deviations = [expected_deviation(length) for length in (1, 10, 100, 1000)]
    assert deviations == sorted(deviations, reverse=True)


TEXTS = st.text(max_size=80)
LANGUAGE_CODES = st.sampled_from(sorted(LANGUAGES))


@given(st.lists(st.builds(Pair, TEXTS, TEXTS, LANGUAGE_CODES), min_size=1, max_size=5))
def test_any_text_has_finite_scores_alone_as_in_a_batch(pairs):
    learned = {code: LengthStatistics(0.1, 1.0, 0.0) for code in LANGUAGES}
    for filter_ in build_filters(BITEXT):
        if hasattr(filter_, "with_learned"):
            filter_ = filter_.with_learned(learned)
        together = filter_.score(pairs)
        assert [filter_.score([pair])[0] for pair in pairs] == pytest.approx(list(together))
        assert all(map(math.isfinite, together))


def test_filters_travel_pickled():
    for filter_ in build_filters(BITEXT):
        filter_.score([Pair("Good morning", "Guten Morgen", "de")])
        again = pickle.loads(pickle.dumps(filter_))
        assert again.name == filter_.name
        assert again.threshold == filter_.threshold
