"""C4's heuristics (Raffel et al. 2019, section 2.2) in many scripts, and the order they work in."""

import pytest

from beam_pipelines import filter_monolingual
from beam_pipelines.filtering.prepare_text import TextSettings, prepare
from beam_pipelines.filters.c4.curly_bracket import CurlyBracket
from beam_pipelines.filters.c4.few_sentences import FewSentences
from beam_pipelines.filters.c4.few_words import FewWords, count_words
from beam_pipelines.filters.c4.javascript import Javascript
from beam_pipelines.filters.c4.lorem_ipsum import LoremIpsum
from beam_pipelines.filters.c4.no_terminal_punctuation import NoTerminalPunctuation
from beam_pipelines.filters.c4.policy_notice import PolicyNotice
from beam_pipelines.records.records import Batch, Document, Sentence
from beam_pipelines.text.sentences import split_sentences


def accepts(filter_, record):
    [score] = filter_.score([record])
    return filter_.accept(score)


@pytest.mark.parametrize(
    ("language", "text", "ends"),
    [
        ("en", "It rains.", True),
        ("en", "Does it rain?", True),
        ("en", "It rains!", True),
        ("en", 'She said "it rains"', True),
        ("en", 'She said "it rains."', True),
        ("en", "It rains (a little.)", True),
        ("en", "It rains…", True),
        ("en", "Read more »", True),
        ("en", "It rains. ", True),
        ("en", "Home | Imprint", False),
        ("en", "Contents:", False),
        ("en", "It rains,", False),
        ("en", "It rains;", False),
        ("en", "", False),
        ("de", "Es „regnet.“", True),
        ("el", "Βρέχει;", True),
        ("hy", "Անձրև է գալիս։", True),
        ("hy", "Անձրև է գալիս:", True),
        ("ar", "هل تمطر؟", True),
        ("ur", "بارش ہو رہی ہے۔", True),
        ("hi", "बारिश हो रही है।", True),
        ("hi", "बारिश हो रही है|", True),
        ("hi", "बारिश हो रही है", False),
        ("km", "ភ្លៀងធ្លាក់។", True),
        ("my", "မိုးရွာနေသည်။", True),
        ("bo", "ཆར་པ་འབབ་ཀྱི་འདུག །", True),
        ("am", "ዝናብ እየዘነበ ነው።", True),
        ("am", "ዝናብ እየዘነበ ነው፡፡", True),
        ("zh", "下雨了。", True),
        ("zh", "他说：“下雨了。”", True),
        ("zh", "首页", False),
        ("ja", "「雨が降る」", True),
        ("ja", "雨が降りますか？", True),
        ("ko", "비가 온다.", True),
        ("ko", "비가 온다", False),
        ("th", "ฝนกำลังตก", True),
        ("lo", "ຝົນຕົກ", True),
        ("si", "වැස්ස වහිනවා.", True),
        ("ru", "Идёт дождь", False),
    ],
)
def test_terminal_punctuation(language, text, ends):
    assert accepts(NoTerminalPunctuation(), Sentence(text, language)) is ends


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("One two three four five", 5),
        ("One - two | three", 3),
        ("", 0),
        ("3 apples", 2),
        ("不论天气如何我都去", 4),  # 9 characters, 2 a word
        ("東京タワーへ行く", 4),  # 8 characters
        ("ฝนกำลังตกหนัก", 2),  # 13 characters, 5 a word
        ("Das 東京 ist gut", 4),  # 3 and 1
        ("བོད་སྐད་ཡག་པོ་", 2),  # 4 syllables, 2 a word
        ("비가 온다", 2),
    ],
)
def test_words(text, words):
    assert count_words(text) == words
    assert accepts(FewWords(words), Sentence(text, "xx"))
    assert not accepts(FewWords(words + 1), Sentence(text, "xx"))


@pytest.mark.parametrize(
    ("filter_", "text", "stays"),
    [
        (CurlyBracket(), "if (a) { b }", False),
        (CurlyBracket(), "An ordinary (page).", True),
        (LoremIpsum(), "Text.\nLorem Ipsum dolor sit amet.", False),
        (LoremIpsum(), "Lorem and ipsum.", True),
        (Javascript(), "Please enable JavaScript to go on.", False),
        (Javascript(), "Java and a script.", True),
        (PolicyNotice(), "Read our Privacy Policy and Terms of Use.", False),
        (PolicyNotice(), "Diese Seite: We use cookies.", False),
        (PolicyNotice(), "A policy of cookies in private.", True),
        (FewSentences(3), "One is here. Two is here.\nThree is here.", True),
        (FewSentences(3), "One is here. Two is here.", False),
    ],
)
def test_pages_and_lines(filter_, text, stays):
    assert accepts(filter_, Document(text, "en")) is stays


@pytest.mark.parametrize(
    ("language", "paragraph", "sentences"),
    [
        ("en", "Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
        ("de", "Am 3. Mai kam er. Er ging.", ["Am 3. Mai kam er.", "Er ging."]),
        ("ja", "雨が降る。風が吹く。", ["雨が降る。", "風が吹く。"]),
        ("hi", "बारिश हुई। वह गया।", ["बारिश हुई।", "वह गया।"]),
        ("km", "ភ្លៀងធ្លាក់។ គាត់ទៅ។ល។", ["ភ្លៀងធ្លាក់។", "គាត់ទៅ។ល។"]),
        ("my", "မိုးရွာသည်။ သူသွားသည်။", ["မိုးရွာသည်။", "သူသွားသည်။"]),
        ("th", "ฝนตก เขาไป", ["ฝนตก เขาไป"]),
        ("xx", "One. Two.", ["One.", "Two."]),
        ("en", "  ", []),
    ],
)
def test_sentences(language, paragraph, sentences):
    assert split_sentences(paragraph, language) == sentences


SETTINGS = TextSettings(
    page_filters=(LoremIpsum(), CurlyBracket()),
    line_filters=(NoTerminalPunctuation(), FewWords(), Javascript()),
    rest_filters=(FewSentences(),),
)
RIVER = "The river rises in the mountains. It flows through two lakes. It ends in the sea."


def run_prepare(text, settings=SETTINGS, language="en", kind=Document):
    kept, dropped = prepare(Batch(language, [kind(text, language)]), settings)
    return (
        [[sentence.text for sentence in passage] for passage in kept],
        {reason: [s.text for s in sentences] for reason, sentences in dropped.items()},
    )


def test_lines_of_a_page():
    kept, dropped = run_prepare(
        f"Home | About\n\n{RIVER}\nToo few words.\nThis page needs Javascript to be on, sorry."
    )
    assert kept == [
        [
            "The river rises in the mountains.",
            "It flows through two lakes.",
            "It ends in the sea.",
        ]
    ]
    assert dropped == {
        "no_terminal_punctuation": ["Home | About"],
        "few_words": ["Too few words."],
        "javascript": ["This page needs Javascript to be on, sorry."],
    }


def test_a_bad_page_goes_as_a_whole():
    assert run_prepare(f"{RIVER}\nvar a = {{}}")[1].keys() == {"curly_bracket"}
    kept, dropped = run_prepare("It flows through two lakes here. It ends in the sea there.")
    assert (kept, list(dropped)) == ([], ["few_sentences"])


def test_languages_of_a_page_are_found_by_line():
    german = "Der Fluss fließt durch zwei Seen bis in das große Meer im Norden."
    settings = SETTINGS._replace(c4=False)
    # The model knows it; it is none of the paper's.
    bashkir = "Башҡортостан Республикаһы — Рәсәй Федерацияһы составындағы республика."
    kept, dropped = run_prepare(f"{RIVER}\n{german}\n{bashkir}", settings, language="und")
    assert kept[0][-1] == german
    assert dropped == {"other_language": [bashkir]}
    kept, _ = prepare(Batch("und", [Document(f"{RIVER}\n{german}", "und")]), settings)
    assert [sentence.language for sentence in kept[0]] == ["en", "en", "en", "de"]
    strict = settings._replace(min_language_confidence=1.0)
    assert run_prepare(f"{german}", strict, language="und")[1].keys() == {"uncertain_language"}


@pytest.mark.parametrize(
    ("settings", "kept", "dropped"),
    [
        # Lines are left alone, unless the user asks.
        (SETTINGS, [["Home"]], {}),
        (SETTINGS._replace(c4=True), [], {"no_terminal_punctuation": ["Home"]}),
    ],
)
def test_lines_that_are_no_page(settings, kept, dropped):
    assert run_prepare("Home", settings, kind=Sentence) == (kept, dropped)


def test_splitting_lines():
    kept, _ = run_prepare(RIVER, SETTINGS._replace(split_sentences=True), kind=Sentence)
    assert [len(passage) for passage in kept] == [3]


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [("min_words", 10, "few_words"), ("min_sentences", 4, "few_sentences")],
)
def test_limits_are_options(tmp_path, option, value, reason):
    path = tmp_path / "enwiki-x.xml"
    path.write_text(
        "<mediawiki><page><title>R</title><ns>0</ns><revision><text>"
        "The river rises here. It flows there. It ends.</text></revision></page></mediawiki>"
    )
    kept = filter_monolingual.run([str(path)], str(tmp_path / "out"), min_characters=1)
    assert kept["total"]["kept"] == 3
    options = {"min_characters": 1, option: value}
    report = filter_monolingual.run([str(path)], str(tmp_path / "strict"), **options)
    assert report["total"]["dropped"][reason] == 3
    assert report["thresholds"][reason] == value
