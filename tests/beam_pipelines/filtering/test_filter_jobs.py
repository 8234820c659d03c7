"""The filter commands, end to end."""

import collections
import gzip
import json
import random
from pathlib import Path

import apache_beam as beam
import pytest
from text_files import content_of

from beam_pipelines import filter_bitext, filter_monolingual
from beam_pipelines.filtering.shards import plan_shards
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.reading.readers import ReadCorpus, read_file
from beam_pipelines.records.records import Pair, Sentence
from beam_pipelines.reporting import report
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile, find_corpus_files

TWO_PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


def read_all(out):
    return [record for file in find_corpus_files([str(out)]) for record in read_file(file)]


def test_monolingual(tmp_path):
    with gzip.open(tmp_path / "de.txt.gz", "wt", encoding="utf-8", newline="\n") as file:
        file.write("Das ist ein Satz.\n  Das ist ein Satz. \n\nKurz.\n" + "x" * 5001 + "\n")
    (tmp_path / "pt_BR.txt").write_text("Uma frase em português.\r\nDas ist ein Satz.\n", "utf-8")
    out = tmp_path / "out"
    assert main(["corpus", "filter-monolingual", str(tmp_path), "--out", str(out)]) == 0
    assert sorted(read_all(out)) == [
        Sentence("Das ist ein Satz.", "de"),
        Sentence("Das ist ein Satz.", "pt"),
        Sentence("Uma frase em português.", "pt"),
    ]
    found = json.loads((out / "report.json").read_text())
    assert found["languages"]["de"] == {
        "read": 5,
        "kept": 1,
        "dropped": {
            "bad_record": 0,
            "other_language": 0,
            "too_short": 2,
            "too_long": 1,
            "duplicate": 1,
            "over_cap": 0,
        },
    }
    assert found["total"]["read"] == 7
    assert found["total"]["kept"] == 3
    assert found["thresholds"] == {"too_short": 10, "too_long": 5000}
    assert sorted(content_of(out)) == [
        "examples.md",
        "monolingual/de/part-00000-of-00001.tfrecord.gz",
        "monolingual/pt/part-00000-of-00001.tfrecord.gz",
        "report.json",
    ]


def test_options_move_the_limits(tmp_path):
    (tmp_path / "de.txt").write_text("Ja.\nNein, nein.\n")
    out = tmp_path / "out"
    args = ["--min-characters", "3", "--max-characters", "5"]
    assert (
        main(["corpus", "filter-monolingual", f"{tmp_path}/de.txt", "--out", str(out), *args]) == 0
    )
    assert read_all(out) == [Sentence("Ja.", "de")]


def test_bitext_counts_every_reason(tmp_path):
    rows = [
        ("Good morning.", "Guten Morgen."),
        ("Good morning.", "Guten Morgen.", "further column"),
        ("Good morning.", "Moin."),
        ("I", "Ich"),
        ("word " * 1001, "Wort " * 1001),
        ("Yes", "Ja, das ist wirklich so, und es war schon immer so."),
        ("Berlin", "BERLIN"),
        ("10:30", "10.30"),
    ]
    (tmp_path / "de.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    found = filter_bitext.run([f"{tmp_path}/de.tsv"], str(tmp_path / "out"))
    assert found["languages"]["de"] == {
        "read": 8,
        "kept": 2,
        "dropped": {
            "bad_record": 0,
            "other_language": 0,
            "too_short": 1,
            "too_long": 1,
            "length_ratio": 1,
            "identical_sides": 1,
            "few_letters": 1,
            "numbers_disagree": 0,
            "markup": 0,
            "wrong_script": 0,
            "unusual_length": 0,
            "similar_sides": 0,
            "wrong_language": 0,
            "duplicate": 1,
            "over_cap": 0,
        },
    }
    assert sorted(read_all(tmp_path / "out")) == [
        Pair("Good morning.", "Guten Morgen.", "de"),
        Pair("Good morning.", "Moin.", "de"),
    ]


def write_random_corpus(folder, seed):
    """Returns what is expected of it: language -> (lines, lines kept)."""
    generator = random.Random(seed)
    words = ["ab", "cde", "ünï", "日本語", "ภาษา", "привет", "नमस्ते", "x"]
    folder.mkdir()
    lines = collections.defaultdict(list)
    for number, language in enumerate(["de", "zh", "th", "sw", "de_AT"]):
        file_lines = [
            " ".join(generator.choices(words, k=generator.randint(0, 4)))
            for _ in range(generator.randint(1, 2500))
        ]
        (folder / str(number)).mkdir()
        (folder / str(number) / f"{language}.txt").write_text(
            "".join(line + "\n" for line in file_lines), encoding="utf-8"
        )
        lines[language.split("_")[0]] += file_lines
    return {
        language: (len(found), {line for line in found if len(line) >= 10})
        for language, found in lines.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_report_adds_up_and_shards_hold_what_it_says(tmp_path, seed):
    expected = write_random_corpus(tmp_path / "in", seed)
    out = tmp_path / "out"
    found = filter_monolingual.run([str(tmp_path / "in")], str(out))
    for language, (read, kept) in expected.items():
        row = found["languages"][language]
        assert row["read"] == read == row["kept"] + sum(row["dropped"].values())
        assert row["kept"] == len(kept)
    records = read_all(out)
    assert len(records) == found["total"]["kept"]
    assert set(records) == {
        Sentence(line, language) for language, (_, kept) in expected.items() for line in kept
    }


@pytest.mark.slow
def test_output_depends_neither_on_runner_nor_on_order(tmp_path):
    write_random_corpus(tmp_path / "in", 7)
    filter_monolingual.run([str(tmp_path / "in")], str(tmp_path / "one"))
    filter_monolingual.run(
        [str(tmp_path / "in")], str(tmp_path / "two"), beam_options=TWO_PROCESSES
    )
    assert content_of(tmp_path / "one") == content_of(tmp_path / "two")

    for path in (tmp_path / "in").rglob("*.txt"):
        path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    filter_monolingual.run([str(tmp_path / "in")], str(tmp_path / "three"))
    assert content_of(tmp_path / "one") == content_of(tmp_path / "three")


def test_clean_shards_filter_to_themselves(tmp_path):
    write_random_corpus(tmp_path / "in", 8)
    filter_monolingual.run([str(tmp_path / "in")], str(tmp_path / "one"))
    again = filter_monolingual.run([str(tmp_path / "one")], str(tmp_path / "two"))
    assert again["total"]["read"] == again["total"]["kept"]
    assert content_of(tmp_path / "one" / "monolingual") == content_of(
        tmp_path / "two" / "monolingual"
    )


def test_several_shards(tmp_path):
    lines = [f"Satz Nummer {number} von vielen." for number in range(60_000)]
    (tmp_path / "de.txt").write_text("".join(line + "\n" for line in lines * 2))
    out = tmp_path / "out"
    found = filter_monolingual.run([f"{tmp_path}/de.txt"], str(out), megabytes_per_shard=1)
    shards = sorted(path.name for path in (out / "monolingual" / "de").iterdir())
    assert shards == [f"part-{n:05}-of-00004.tfrecord.gz" for n in range(4)]
    assert found["total"]["dropped"]["duplicate"] == 60_000
    assert sorted(record.text for record in read_all(out)) == sorted(lines)


def test_plan_shards(tmp_path):
    (tmp_path / "de.txt").write_bytes(b"x" * 1_500_000)
    (tmp_path / "fr.txt.gz").write_bytes(b"x" * 600_000)
    files = find_corpus_files([str(tmp_path)])
    assert plan_shards(files, 1) == {"de": 2, "fr": 3}
    assert plan_shards(files, 100) == {"de": 1, "fr": 1}


def test_a_language_of_which_nothing_is_left_has_no_folder(tmp_path):
    (tmp_path / "de.txt").write_text("Kurz.\n")
    (tmp_path / "fr.txt").write_text("Une phrase assez longue.\n")
    out = tmp_path / "out"
    found = filter_monolingual.run([str(tmp_path)], str(out))
    assert [path.name for path in (out / "monolingual").iterdir()] == ["fr"]
    assert found["languages"]["de"]["kept"] == 0


BAD_FILES = {
    "truncated": ("de.txt.gz", gzip.compress(b"Ein ganzer Satz hier.\n" * 5000)[:-20], "truncated"),
    "not UTF-8": ("de.txt", b"Ein ganzer Satz.\nGr\xfc\xdfe\n", ":2: invalid UTF-8"),
    "empty": ("de.txt", b"", "the file is empty"),
    "one column": ("de.tsv", b"Hello\tHallo\nHello Hallo\n", ":2: one column"),
    "empty side": ("de.tsv", b"Hello\tHallo\nHello\t \n", ":2: the target column is empty"),
    "unknown language": ("qqq.txt", b"Ein ganzer Satz.\n", "'qqq' is not the code"),
}


# Worker processes take seconds to start: one damaged file will do for them.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, []) for name in BAD_FILES), ("not UTF-8", ["--", *TWO_PROCESSES])],
)
def test_bad_input(tmp_path, capfd, name, options):
    base, content, message = BAD_FILES[name]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / base
    path.write_bytes(content)
    extension, command = (
        ("tsv", "filter-bitext") if ".tsv" in base else ("txt", "filter-monolingual")
    )
    (tmp_path / "in" / f"fr.{extension}").write_text("A good sentence.\tUne bonne phrase.\n")
    args = ["corpus", command, str(tmp_path / "in"), "--out", str(tmp_path / "out"), *options]
    assert main(args) == 2
    captured = capfd.readouterr()
    lines = [line for line in captured.err.splitlines() if not line.startswith("filtering")]
    assert len(lines) == 1, captured.err
    assert lines[0].startswith(f"labse: error: {path}")
    assert message in lines[0]
    assert "; " in lines[0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_taken_output_is_refused_and_overwritten_on_request(tmp_path, capfd):
    (tmp_path / "de.txt").write_text("Ein ganzer Satz.\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("mine")
    args = ["corpus", "filter-monolingual", f"{tmp_path}/de.txt", "--out", str(out)]
    assert main(args) == 2
    assert "--overwrite" in capfd.readouterr().err
    assert (out / "mine").exists()
    assert main([*args, "--overwrite"]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "examples.md",
        "monolingual",
        "report.json",
    ]


NAMES = [
    *("clean [v2]", "a*b", "q?", "{x,y}", "two  words", "quo'te\"s", "ملف نظيف", "-x"),
    *("[", "[!a]", "per%20cent#1", "new\nline", "back\\slash", "**", "$HOME", "~"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_pattern(tmp_path, monkeypatch, name):
    """Files that its signs would match as a pattern stay as they are."""
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    others = [f"clean {one}" for one in ("v", "2", "aXb", "qq", "x", "a", "b", "")]
    for other in others:
        Path(other).mkdir()
        Path(other, "mine").write_text("mine")
    Path("ru.tsv").write_text("We meet at noon.\tМы встречаемся в полдень.\n" * 3, "utf-8")
    clean, counts, vocab = (f"./{one}{name}" for one in ("", "counts ", "vocab "))
    for _ in range(2):
        command = ["corpus", "filter-bitext", "ru.tsv", "--out", clean, "--overwrite"]
        assert main(command) == 0
    shards = "bitext/ru/part-00000-of-00001.tfrecord.gz"
    assert content_of(Path(clean)).keys() == {"report.json", "examples.md", shards}
    build = ["vocab", "build", clean, "--vocab-size", "200", "--counts", counts]
    assert main([*build, "--out", vocab]) == main([*build, "--out", vocab, "--overwrite"]) == 0
    assert {"W", "##м"} <= {*Path(vocab).read_text("utf-8").split()}
    assert all(Path(other, "mine").read_text() == "mine" for other in others)
    made = {clean, counts, vocab, "ru.tsv", *others}
    assert {path.name for path in Path().iterdir()} == {Path(one).name for one in made}


def test_no_files():
    with pytest.raises(InputError, match="no corpus files"):
        beam.Pipeline() | ReadCorpus([])


def test_the_english_side_is_the_source(tmp_path):
    (tmp_path / "ja.tsv").write_text("Hello.\tこんにちは。\n", encoding="utf-8")
    file = CorpusFile(str(tmp_path / "ja.tsv"), "ja", "bitext", "tsv")
    assert list(read_file(file)) == [Pair(source="Hello.", target="こんにちは。", language="ja")]


def test_lost_records_are_no_small_matter():
    counts = [(("de", report.READ), 3), (("de", report.KEPT), 1), (("de", "too_short"), 1)]
    with pytest.raises(RuntimeError, match="do not add up"):
        report.build_report(counts, ["de"], [TooShort()])
