"""`labse mine-negatives` end to end, on the small corpora of six languages."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest
from text_files import write_lines, write_records
from tiny_text import FOREIGN, sentences_of

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files.outputs import locked
from labse_tf.systems.hard_negatives.mine import mine
from labse_tf.systems.hard_negatives.selection import text_key

NETWORK = "labse_tf.systems.hard_negatives.averaging_encoder:AveragingEncoder"


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def labse(*arguments):
    return main([str(one) for one in arguments])


def train(config_file, run_dir, steps, width):
    sets = [f"encoder.network={NETWORK}", f"encoder.hidden_size={width}", f"train.steps={steps}"]
    sets += ["train.batch_size=32", "train.optimizer.learning_rate=0.01"]
    sets += ["train.loop.log_interval=20", "train.loop.checkpoint_interval=60"]
    sets = [f"--set={one}" for one in sets]
    assert labse("train", config_file, "--run-dir", run_dir, *sets) == 0


# An encoder that has hardly been trained finds all sentences alike.
ALL = ("--max-similarity", 1)


@pytest.fixture(scope="module")
def mined(tmp_path_factory, config_file, bitext_dir):
    folder = tmp_path_factory.mktemp("mined")
    train(config_file, folder / "run", 2, 4)
    job = ("mine-negatives", bitext_dir, "--model", folder / "run", *ALL)
    assert labse(*job, "--out", folder / "out") == 0
    return folder


def test_every_pair_gets_negatives_and_the_report_counts_them(mined):
    out = mined / "out"
    names = {path.name for path in out.iterdir()}
    assert names == {"report.json", *(f"{language}.tsv.gz" for language in FOREIGN)}
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["settings"]["count"] == 3 and set(report["languages"]) == set(FOREIGN)
    for language, facts in report["languages"].items():
        sources, targets = sentences_of("en"), sentences_of(language)
        found = rows(out / f"{language}.tsv.gz")
        assert [row[:2] for row in found] == list(map(list, zip(sources, targets, strict=True)))
        for row in found:
            wrong = [text for text in row[2:] if text]
            assert len(row) == 5 and len(set(wrong)) == len(wrong)
            assert set(wrong) <= set(targets) - {row[1]}
        assert facts["pairs"] == facts["sources"] == facts["targets"] == 48
        by_number = np.bincount([3 - row[2:].count("") for row in found], minlength=4)
        assert facts["pairs_by_negatives"] == by_number.tolist()
        nearest = facts["similarity"]["negatives"]
        assert nearest == sorted(nearest, reverse=True)
        assert all(-1 <= one <= 1 for one in (*nearest, facts["similarity"]["translation"]))


def test_a_stopped_job_goes_on_and_a_finished_one_does_nothing(mined, bitext_dir, tmp_path):
    """Two languages are missing, one of them in the report: the same bytes come out."""
    out = tmp_path / "out"
    shutil.copytree(mined / "out", out)
    report = json.loads((out / "report.json").read_text("utf-8"))
    del report["languages"]["ja"]
    (out / "report.json").write_text(json.dumps(report), "utf-8")
    (out / "ja.tsv.gz").write_bytes(b"broken")
    (out / "th.tsv.gz").unlink()
    command = ("mine-negatives", bitext_dir, "--model", mined / "run", *ALL, "--out", out)
    assert labse(*command) == 0
    for path in (mined / "out").iterdir():
        assert (out / path.name).read_bytes() == path.read_bytes()
    before = times_of(out)
    assert labse(*command) == 0 and times_of(out) == before


@pytest.mark.slow
def test_the_negatives_are_near(config_file, bitext_dir, tmp_path):
    """Half of the words of a sentence are in its negatives: at random 1 of 4 shares one."""
    run, out = tmp_path / "run", tmp_path / "out"
    train(config_file, run, 60, 32)
    assert labse("mine-negatives", bitext_dir, "--model", run, "--out", out) == 0
    shared = []
    for language in FOREIGN:
        targets = sentences_of(language)
        for number, row in enumerate(rows(out / f"{language}.tsv.gz")):
            for text in filter(None, row[2:]):
                place = targets.index(text)
                shared.append(place // 6 == number // 6 or place % 6 == number % 6)
    assert np.mean(shared) > 0.6
    for facts in json.loads((out / "report.json").read_text("utf-8"))["languages"].values():
        assert facts["similarity"]["negatives"][-1] <= facts["similarity"]["translation"]


def test_a_model_dir_mines_too(model_dir, bitext_dir, tmp_path):
    command = ("mine-negatives", bitext_dir / "de.tsv", "--model", model_dir, "--count", 2)
    assert labse(*command, "--out", tmp_path / "out") == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"de.tsv.gz", "report.json"}
    assert all(len(row) == 4 for row in rows(tmp_path / "out" / "de.tsv.gz"))


# The job alone, with an encoder of letters.


class LetterEncoder:
    """Embeds a text by how often each letter is in it, so that a test can see what is near."""

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        counts = np.zeros([len(texts), 997], np.float32)
        for row, text in enumerate(texts):
            for letter in text:
                counts[row, ord(letter) % 997] += 1
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def corpus(tmp_path):
    lines = ["one cat\teine Katze", "One cat!\tKatze", "two cats\tzwei Katzen"]
    lines += ["ten dogs\tzehn Hunde", "one cats\teine Katzen", "a mat\tMatte"]
    (tmp_path / "corpus").mkdir()
    write_lines(tmp_path / "corpus" / "de.tsv", lines)
    return tmp_path / "corpus"


def run_job(corpus, out, **changes):
    encoder = LetterEncoder()
    arguments = {"model_file": __file__, "count": 2, "max_similarity": 1.0} | changes
    report = mine([str(corpus)], out, encoder, **arguments)
    return report, rows(out / "de.tsv.gz"), encoder


def test_a_second_job_is_refused_and_what_a_killed_one_left_goes(corpus, tmp_path):
    out = tmp_path / "out"
    report, found, _ = run_job(corpus, out, pool_size=2)
    content, before = (out / "de.tsv.gz").read_bytes(), times_of(out)
    with locked(out), pytest.raises(InputError, match="another process"):
        run_job(corpus, out, pool_size=2, overwrite=True)
    assert times_of(out) == before
    # A job that was killed before the report names the language; the rows are of another time.
    (out / "report.json").write_text(json.dumps({"settings": report["settings"], "languages": {}}))
    (out / "de.tsv.gz").write_bytes(gzip.compress(b"x\ty\tz\n"))
    (out / ".pools").mkdir()
    (out / ".pools" / "1").write_text("A cat.\tEine Ratte.\n")
    assert run_job(corpus, out, pool_size=2)[:2] == (report, found)
    assert sorted(path.name for path in out.iterdir()) == ["de.tsv.gz", "report.json"]
    assert (out / "de.tsv.gz").read_bytes() == content


def test_no_translation_of_the_same_source_is_a_negative_in_parts_too(corpus, tmp_path):
    report, whole, encoder = run_job(corpus, tmp_path / "whole")
    of = {(row[0], row[1]): row[2:] for row in whole}
    assert len(of) == 6
    # Not "Katze", which translates "One cat!".
    assert of["one cat", "eine Katze"] == of["One cat!", "Katze"]
    assert not {"eine Katze", "Katze"} & set(of["one cat", "eine Katze"])
    assert report["languages"]["de"]["sources"] == 5
    # Each text is embedded once.
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 5 + 6
    report, found, _ = run_job(corpus, tmp_path / "parts", pool_size=2)
    assert sorted(row[:2] for row in found) == sorted(row[:2] for row in whole)
    facts = report["languages"]["de"]
    assert facts["pairs"] == 6 == sum(facts["pairs_by_negatives"])
    of = {}
    for source, _, *wrong in found:
        assert of.setdefault(text_key(source), wrong) == wrong
        assert not {"Katze", "eine Katze"} & set(wrong) or text_key(source) != "onecat"


def test_other_settings_and_contents_are_refused(corpus, tmp_path):
    run_job(corpus, tmp_path / "out")
    before = (tmp_path / "out" / "de.tsv.gz").read_bytes()
    with pytest.raises(InputError, match=r"other settings \(count\)"):
        run_job(corpus, tmp_path / "out", count=3)
    assert (tmp_path / "out" / "de.tsv.gz").read_bytes() == before
    _, found, _ = run_job(corpus, tmp_path / "out", count=3, overwrite=True)
    assert all(len(row) == 5 for row in found)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        run_job(corpus, tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("option", ["count=0", "pool_size=1", "max_similarity=2"])
def test_what_cannot_be_mined_with(corpus, tmp_path, option):
    name, _, value = option.partition("=")
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} is {value}"):
        run_job(corpus, tmp_path / "out", **{name: int(value)})
    assert not (tmp_path / "out").exists()


def test_missing_files_and_broken_lines_are_named(corpus, tmp_path, model_dir, capsys):
    command = ("mine-negatives", "--out", tmp_path / "out", "--model")
    for model, inputs, message in (
        (tmp_path / "none", corpus, "is not a model dir"),
        (model_dir, tmp_path / "none", "no such file"),
    ):
        assert labse(*command, model, inputs) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    with open(corpus / "de.tsv", "a", encoding="utf-8") as file:
        file.write("no tab\n")
    with pytest.raises(InputError, match="one column") as caught:
        run_job(corpus, tmp_path / "out")
    assert caught.value.line == 7
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.json"]


def test_tabs_and_line_ends_of_shards_become_spaces(tmp_path):
    """A shard's text may hold what would end a column."""
    pairs = (("one\tcat", "eine\nKatze"), ("two dogs", "zwei Hunde"))
    shard = tmp_path / "bitext" / "de" / "part-00000-of-00001.tfrecord"
    write_records(shard, pairs, ("src_raw", "tgt_raw"))
    _, found, _ = run_job(tmp_path / "bitext", tmp_path / "out", count=1)
    expected = ["one cat", "eine Katze", "zwei Hunde"], ["two dogs", "zwei Hunde", "eine Katze"]
    assert found == list(expected)
