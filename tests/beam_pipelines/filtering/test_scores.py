"""Scores of every record, other limits applied to them, and the same bytes on any runner."""

import json
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_files import content_of, write_lines

from beam_pipelines import filter_bitext
from beam_pipelines.reporting import format_report
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import find_corpus_files

TWO_PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


def write_corpus(folder):
    """Pairs of three languages with everything in them that may be dropped."""
    generator = random.Random(5)
    folder.mkdir()
    for language, word in (("de", "Straße"), ("ja", "日本語"), ("th", "ภาษา")):
        lines = []
        for _ in range(600):
            number, length = generator.randint(0, 999), generator.choice([0, 1, 1, 1, 30])
            lines.append(f"word number {number}\t{word} {number}{f' {word}' * length}")
        lines += ["x\ty", "same same\tsame same", "10:30\t10.30", "no tab here"]
        lines += [
            f"page 12 of the book\t{word} 77 {word}",
            f"one line\t<td><b>{word}</b></td>",
            "good morning to you\tдоброе утро друзьям",
            "the fox jumps over the lazy dog\tthe fox jumps over the lazy dog!",
            "we all go to the town hall now\tnous allons tous à la mairie de la ville maintenant",
        ]
        generator.shuffle(lines)
        write_lines(folder / f"{language}.tsv", lines)
    row = {"src_raw": ["Good morning.", "Hello there."], "tgt_raw": ["Bonjorn.", "Hallo da."]}
    pq.write_table(pa.table({**row, "language_code": ["../oc", "de"]}), folder / "mixed.parquet")


OPTIONS = {"max_bad_records": 3, "max_per_language": 100, "scores": True, "seed": 4}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A corpus in `in`, what a job makes of it in `one`, and its report."""
    folder = tmp_path_factory.mktemp("scored")
    write_corpus(folder / "in")
    return folder, filter_bitext.run([str(folder / "in")], str(folder / "one"), **OPTIONS)


@pytest.mark.slow
def test_output_is_the_same_on_one_process_and_two_and_in_any_order(tmp_path, scored):
    folder, report = scored
    reasons = set(report["total"]["dropped"]) - {"too_long"}
    assert all(report["total"]["dropped"][reason] for reason in reasons)
    inputs = [str(folder / "in")]
    filter_bitext.run(inputs, str(tmp_path / "two"), beam_options=TWO_PROCESSES, **OPTIONS)
    one = content_of(folder / "one")
    assert one == content_of(tmp_path / "two")
    shutil.copytree(folder / "in", tmp_path / "in")
    for path in (tmp_path / "in").glob("*.tsv"):
        write_lines(path, path.read_text("utf-8").splitlines()[::-1])
    filter_bitext.run([str(tmp_path / "in")], str(tmp_path / "three"), **OPTIONS)
    three = content_of(tmp_path / "three")
    # The report names the bad lines, and these lie elsewhere now.
    assert one.keys() == three.keys()
    assert [name for name in one if one[name] != three[name]] == ["report.json"]


@pytest.mark.slow
def test_limits_moved_on_scores_give_what_they_give_on_the_corpus(tmp_path, monkeypatch, scored):
    folder, _ = scored
    options = {"max_length_ratio": 1.5, "min_characters": 5, "max_bad_records": 3}
    options |= {"max_per_language": 60}
    expected = filter_bitext.run([str(folder / "in")], str(tmp_path / "direct"), **options)
    monkeypatch.setattr("beam_pipelines.filters.Filter.score", None)  # Not scored again.
    scores = [str(folder / "one" / "scores")]
    found = filter_bitext.run(scores, str(tmp_path / "again"), from_scores=True, **options)
    assert content_of(tmp_path / "again" / "bitext") == content_of(tmp_path / "direct" / "bitext")
    # Bad records have no scores, so they are not read again.
    for row in (expected["total"], *expected["languages"].values()):
        row["read"] -= row["dropped"]["bad_record"]
        row["dropped"]["bad_record"] = 0
    assert found == {**expected, "bad_records": []}


def test_scores(tmp_path):
    columns = {
        "src_raw": ["Good morning.", "Good morning.", "Yes", "Tab\there"],
        "tgt_raw": ["Guten Morgen.", "Guten Morgen.", "Ja, das ist wirklich so.", "1"],
        "language_code": ["de", "de", "de", "xx"],
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    out = tmp_path / "out"
    filter_bitext.run([str(tmp_path)], str(out), scores=True, max_length_ratio=5)
    found = pq.read_table(out / "scores" / "de").to_pylist()
    # The language model's score of a few words is not tested here.
    assert all(-1 <= row.pop("wrong_language") < 0.3 for row in found)
    names = (*columns, "too_short", "too_long", "length_ratio", "few_letters", "reason")
    assert sorted(tuple(map(row.pop, names)) for row in found) == [
        *[("Good morning.", "Guten Morgen.", "de", 13, 13, 1, pytest.approx(11 / 12), None)] * 2,
        ("Yes", "Ja, das ist wirklich so.", "de", 3, 24, 8, 18 / 20, "length_ratio"),
    ]
    # Two pairs make no median.
    zeros = ("identical_sides", "markup", "unusual_length", "similar_sides")
    rest = {**dict.fromkeys(zeros, 0), "numbers_disagree": 1, "wrong_script": 1}
    assert found == [rest] * 3
    [other] = pq.read_table(out / "scores" / "other_language").to_pylist()
    row = {"src_raw": "Tab\there", "tgt_raw": "1", "language_code": "xx"}
    nothing = dict.fromkeys([*names, *rest, "wrong_language"], None)
    assert other == {**nothing, **row, "reason": "other_language"}
    # Scores are no corpus.
    assert {file.format for file in find_corpus_files([str(out)])} == {"shard"}


def test_what_is_no_folder_of_scores_is_refused(tmp_path, capfd):
    pairs = write_lines(tmp_path / "de.tsv", ["Good morning.\tGuten Morgen."])
    out = tmp_path / "out"
    filter_bitext.run([str(pairs)], str(out), scores=True)
    path = next((out / "scores" / "de").iterdir())
    for args, message in (
        (["filter-bitext", str(pairs)], "contains no scores"),
        (["filter-bitext", str(out)], "contains no scores"),
        (["filter-monolingual", f"{out}/scores"], "has no column 'text'"),
        (["filter-bitext", "--scores", f"{out}/scores"], "--scores and --from-scores"),
        (["filter-bitext", f"{out}/scores"], f"labse: error: {path}: the scores cannot be read"),
    ):
        if str(path) in message:
            path.write_bytes(path.read_bytes()[:-10])
        assert main(["corpus", *args, "--from-scores", "--out", f"{tmp_path}/again"]) == 2
        assert message in capfd.readouterr().err


def test_options_out_of_range(tmp_path):
    for options, message in (
        ({"megabytes_per_shard": 0}, "--shard-megabytes is 0"),
        ({"max_bad_records": -1}, "--max-bad-records is -1"),
        ({"unique_side": "left"}, "--unique-side is 'left'"),
        ({"keep": "best"}, "--keep best needs scores"),
    ):
        with pytest.raises(InputError, match=message):
            filter_bitext.run([str(tmp_path)], str(tmp_path / "out"), **options)


def test_examples_and_the_printed_table(tmp_path, capfd):
    lines = ["Kurz.", "a|b", "", "", *(f"Zu {number}" for number in range(30)), "Ein guter Satz."]
    write_lines(tmp_path / "de.txt", lines)
    args = ["--max-per-language", "5", "--seed", "1", "--examples"]
    args = ["corpus", "filter-monolingual", f"{tmp_path}/de.txt", *args]
    assert main([*args, "33", "--out", f"{tmp_path}/out"]) == 0
    text = (tmp_path / "out" / "examples.md").read_text("utf-8")
    head, *rows = text.splitlines()[4:]
    assert text.startswith(
        "# Random examples of what was dropped\n\n## too_short\n\n| language_code | text |\n"
    )
    assert len(set(rows)) == 34
    assert {r"| de | a\|b |", "| de |  |", "| de | Kurz. |", "| de | Zu 29 |"} <= set(rows)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert capfd.readouterr().out == format_report(report) + "\n"
    assert main([*args, "0", "--out", f"{tmp_path}/none"]) == 0
    assert {path.name for path in (tmp_path / "none").iterdir()} == {"monolingual", "report.json"}


def test_table():
    row = {"read": 8, "kept": 2, "dropped": {"a": 1, "b": 3, "c": 0, "d": 1, "e": 1}}
    total = {"read": 1_234_567, "kept": 1_234_567, "dropped": {"a": 0}}
    languages = {"crh-Latn": row, "xx": {"read": 0, "kept": 0, "dropped": {"a": 0}}}
    unchecked = {"crh-Latn": ["wrong_language"]}
    table = format_report({"languages": languages, "total": total, "unchecked": unchecked})
    assert [" ".join(line.split()) for line in table.splitlines() if line[0] != "-"] == [
        "code language read kept kept % dropped, mostly as",
        "crh-Latn Crimean Tatar (Lat 8 2 25.0 b 3, a 1, d 1",
        "xx 0 0 -",
        "all 2 1,234,567 1,234,567 100.0",
        "crh-Latn: not checked, for want of knowledge of the language: wrong_language",
    ]
