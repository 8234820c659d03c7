"""C4's heuristics (Raffel et al. 2019, section 2.2) in many scripts, and the order they work in."""

from text_files import write_lines

from beam_pipelines import filter_monolingual
from beam_pipelines.filtering.prepare_text import TextSettings, prepare
from beam_pipelines.filters import LINES, PAGES, RESTS
from beam_pipelines.filters.c4 import (
    CurlyBracket,
    FewSentences,
    FewWords,
    Javascript,
    LoremIpsum,
    NoTerminalPunctuation,
    PolicyNotice,
)
from beam_pipelines.records import Batch, Document, Sentence
from beam_pipelines.sentences import split_sentences

# Language -> lines that end like a sentence, and lines that do not.
ENDS = {
    "en": (
        *("It rains.", "Does it rain?", "It rains!", 'She said "it rains"', "It rains. "),
        *('She said "it rains."', "It rains (a little.)", "It rains…", "Read more »"),
    ),
    "el": ("Βρέχει;",),
    "hy": ("Անձրև է գալիս։", "Անձրև է գալիս:"),
    "ar": ("هل تمطر؟",),
    "ur": ("بارش ہو رہی ہے۔",),
    "hi": ("बारिश हो रही है।", "बारिश हो रही है|"),
    "km": ("ភ្លៀងធ្លាក់។",),
    "my": ("မိုးရွာနေသည်။",),
    "bo": ("ཆར་པ་འབབ་ཀྱི་འདུག །",),
    "am": ("ዝናብ እየዘነበ ነው።", "ዝናብ እየዘነበ ነው፡፡"),
    "zh": ("下雨了。", "他说：“下雨了。”"),
    "ja": ("「雨が降る」", "雨が降りますか？"),
    "th": ("ฝนกำลังตก",),
}
NO_ENDS = {
    "en": ("Home | Imprint", "Contents:", "It rains,", "It rains;", ""),
    "hi": ("बारिश हो रही है",),
    "zh": ("首页",),
}


def accepts(filter_, record):
    [score] = filter_.score([record])
    return filter_.accept(score)


def test_each_heuristic():
    for table, ends in ((ENDS, True), (NO_ENDS, False)):
        for language, lines in table.items():
            for line in lines:
                sentence = Sentence(line, language)
                assert accepts(NoTerminalPunctuation(), sentence) is ends, sentence
    for text, words in (
        ("One - two | three", 3),
        ("", 0),
        ("3 apples", 2),
        ("不论天气如何我都去", 4),  # 9 characters, 2 a word
        ("ฝนกำลังตกหนัก", 2),  # 13 characters, 5 a word
        ("Das 東京 ist gut", 4),  # 3 and 1
        ("བོད་སྐད་ཡག་པོ་", 2),  # 4 syllables, 2 a word
        ("비가 온다", 2),
    ):
        assert FewWords().score([Sentence(text, "xx")]) == [words], text
    for filter_, dropped, stays in (
        (CurlyBracket(), "if (a) { b }", "An ordinary (page)."),
        (LoremIpsum(), "Text.\nLorem Ipsum dolor sit amet.", "Lorem and ipsum."),
        (Javascript(), "Please enable JavaScript to go on.", "Java and a script."),
        (PolicyNotice(), "Diese Seite: We use cookies.", "A policy of cookies in private."),
        (FewSentences(3), "One is here. Two is here.", "One is here. Two is here.\nThree is here."),
    ):
        assert not accepts(filter_, Document(dropped, "en"))
        assert accepts(filter_, Document(stays, "en"))


def test_sentences():
    for language, *sentences in (
        ("en", "Dr. Smith came.", "He left."),
        ("de", "Am 3. Mai kam er.", "Er ging."),
        ("hi", "बारिश हुई।", "वह गया।"),
        ("km", "ភ្លៀងធ្លាក់។", "គាត់ទៅ។ល។"),
        ("my", "မိုးရွာသည်။", "သူသွားသည်။"),
        ("th", "ฝนตก เขาไป"),
        ("xx", "One.", "Two."),
    ):
        assert split_sentences(" ".join(sentences), language) == sentences
    assert split_sentences("雨が降る。風が吹く。", "ja") == ["雨が降る。", "風が吹く。"]
    assert split_sentences("  ", "en") == []


SETTINGS = TextSettings(
    {
        PAGES: (LoremIpsum(), CurlyBracket()),
        LINES: (NoTerminalPunctuation(), FewWords(), Javascript()),
        RESTS: (FewSentences(),),
    }
)
RIVER = "The river rises in the mountains. It flows through two lakes. It ends in the sea."


def run_prepare(text, settings=SETTINGS, language="en", kind=Document):
    kept, dropped = prepare(Batch(language, [kind(text, language)]), settings)
    return (
        [[sentence.text for sentence in passage] for passage in kept],
        {reason: [s.text for s in sentences] for reason, sentences in dropped.items()},
    )


def test_lines_and_pages():
    text = f"Home | About\n\n{RIVER}\nToo few words.\nThis page needs Javascript to be on, sorry."
    assert run_prepare(text) == (
        [[f"{sentence}." for sentence in RIVER.rstrip(".").split(". ")]],
        {
            "no_terminal_punctuation": ["Home | About"],
            "few_words": ["Too few words."],
            "javascript": ["This page needs Javascript to be on, sorry."],
        },
    )
    assert run_prepare(f"{RIVER}\nvar a = {{}}")[1].keys() == {"curly_bracket"}
    kept, dropped = run_prepare("It flows through two lakes here. It ends in the sea there.")
    assert (kept, list(dropped)) == ([], ["few_sentences"])
    # Lines that are no page are left alone unless the user asks.
    assert run_prepare("Home", kind=Sentence) == ([["Home"]], {})
    dropped = {"no_terminal_punctuation": ["Home"]}
    assert run_prepare("Home", SETTINGS._replace(c4=True), kind=Sentence) == ([], dropped)
    kept, _ = run_prepare(RIVER, SETTINGS._replace(split_sentences=True), kind=Sentence)
    assert [len(passage) for passage in kept] == [3]


def test_languages_of_a_page_are_found_by_line():
    german = "Der Fluss fließt durch zwei Seen bis in das große Meer im Norden."
    settings = SETTINGS._replace(c4=False)
    # The model knows it; it is none of the paper's.
    bashkir = "Башҡортостан Республикаһы — Рәсәй Федерацияһы составындағы республика."
    page = Document(f"{RIVER}\n{german}\n{bashkir}", "und")
    [passage], dropped = prepare(Batch("und", [page]), settings)
    assert [sentence.language for sentence in passage] == ["en", "en", "en", "de"]
    assert passage[-1].text == german
    assert [(name, one.text) for name, [one] in dropped.items()] == [("other_language", bashkir)]
    strict = settings._replace(min_language_confidence=1.0)
    assert run_prepare(german, strict, language="und")[1].keys() == {"uncertain_language"}


def test_limits_are_options(tmp_path):
    page = "<mediawiki><page><title>R</title><ns>0</ns><revision><text>The river rises here. "
    page += "It flows there. It ends.</text></revision></page></mediawiki>"
    path = write_lines(tmp_path / "enwiki-x.xml", [page])
    options = {"min_characters": 1, "min_words": 10, "min_sentences": 4}
    report = filter_monolingual.run([str(path)], str(tmp_path / "out"), **options)
    assert report["total"]["dropped"]["few_words"] == report["total"]["read"] == 3
    thresholds = report["thresholds"]
    assert (thresholds["few_words"], thresholds["few_sentences"]) == (10, 4)
