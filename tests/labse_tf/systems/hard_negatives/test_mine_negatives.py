"""`labse mine-negatives` end to end, on the small corpora of six languages."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest
from command_line import labse
from text_files import write_lines, write_records
from tiny_text import FOREIGN, sentences_of

from labse_tf.errors import InputError
from labse_tf.files.outputs import locked
from labse_tf.systems.hard_negatives.mine import mine
from labse_tf.systems.hard_negatives.selection import text_key

NETWORK = "labse_tf.systems.hard_negatives.averaging_encoder:AveragingEncoder"


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


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
    train(config_file, folder / "run", 0, 4)
    job = ("mine-negatives", bitext_dir, "--model", folder / "run", *ALL)
    assert labse(*job, "--out", folder / "out") == 0
    return folder


def test_every_pair_gets_negatives_and_the_report_counts_them(mined):
    out = mined / "out"
    assert len([*out.iterdir()]) == 1 + len(FOREIGN)
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["settings"]["count"] == 3 and set(report["languages"]) == set(FOREIGN)
    for language, facts in report["languages"].items():
        sources, targets = sentences_of("en"), sentences_of(language)
        found = rows(out / f"{language}.tsv.gz")
        assert [row[:2] for row in found] == list(map(list, zip(sources, targets, strict=True)))
        for _, target, *wrong in found:
            known, others = set(filter(None, wrong)), {*targets} - {target}
            assert len(wrong) == 3 == len(known) + wrong.count("") and known <= others
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
    run, out, shared = tmp_path / "run", tmp_path / "out", []
    train(config_file, run, 60, 32)
    assert labse("mine-negatives", bitext_dir, "--model", run, "--out", out) == 0
    for language in FOREIGN:
        targets = sentences_of(language)
        for number, row in enumerate(rows(out / f"{language}.tsv.gz")):
            places = [targets.index(text) for text in row[2:] if text]
            shared += [n // 6 == number // 6 or n % 6 == number % 6 for n in places]
    assert np.mean(shared) > 0.6


class LetterEncoder:
    """Embeds a text by how often each letter is in it, so that a test can see what is near."""

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        letters = [[ord(letter) % 997 for letter in text] for text in texts]
        counts = np.array([np.bincount(row, minlength=997) for row in letters], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def corpus(tmp_path):
    lines = ["one cat\teine Katze", "One cat!\tKatze", "two cats\tzwei Katzen"]
    lines += ["ten dogs\tzehn Hunde", "one cats\teine Katzen", "a mat\tMatte"]
    return write_lines(tmp_path / "corpus" / "de.tsv", lines).parent


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
    with pytest.raises(InputError, match=r"other settings \(count\)"):
        run_job(corpus, out, pool_size=2, count=3)
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
    assert report["languages"]["de"]["sources"] == 5
    # Each text is embedded once.
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 5 + 6
    report, parts, _ = run_job(corpus, tmp_path / "parts", pool_size=2)
    assert sorted(row[:2] for row in parts) == sorted(row[:2] for row in whole)
    facts = report["languages"]["de"]
    assert facts["pairs"] == 6 == sum(facts["pairs_by_negatives"])
    for found in (whole, parts):
        of = {}
        for source, _, *wrong in found:
            assert of.setdefault(text_key(source), wrong) == wrong
            # "Katze" translates "One cat!".
            assert not {"Katze", "eine Katze"} & set(wrong) or text_key(source) != "onecat"


def test_only_a_folder_of_the_job_is_overwritten(corpus, tmp_path):
    run_job(corpus, tmp_path / "out")
    _, found, _ = run_job(corpus, tmp_path / "out", count=3, overwrite=True)
    assert all(len(row) == 5 for row in found)
    own = write_lines(tmp_path / "other" / "mine.txt", ["mine"])
    with pytest.raises(InputError, match="not empty"):
        run_job(corpus, own.parent)
    assert list(own.parent.iterdir()) == [own]


def test_what_cannot_be_mined(corpus, tmp_path, model_dir, capsys):
    out = tmp_path / "out"
    for name, value in (("count", 0), ("pool_size", 1), ("max_similarity", 2)):
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')} is {value}"):
            run_job(corpus, out, **{name: value})
    for model, inputs, message in (
        (tmp_path / "none", corpus, "is not a model dir"),
        (model_dir, tmp_path / "none", "no such file"),
    ):
        assert labse("mine-negatives", inputs, "--out", out, "--model", model) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]
    assert not out.exists()
    # A model dir mines too.
    command = ("mine-negatives", corpus, "--model", model_dir, *ALL, "--count", 2, "--out")
    assert labse(*command, tmp_path / "mined") == 0
    assert [len(row) for row in rows(tmp_path / "mined" / "de.tsv.gz")] == [4] * 6
    with open(corpus / "de.tsv", "a", encoding="utf-8") as file:
        file.write("no tab\n")
    with pytest.raises(InputError, match="one column") as caught:
        run_job(corpus, out)
    assert caught.value.line == 7
    assert [path.name for path in out.iterdir()] == ["report.json"]


def test_tabs_and_line_ends_of_shards_become_spaces(tmp_path):
    """A shard's text may hold what would end a column."""
    pairs = (("one\tcat", "eine\nKatze"), ("two dogs", "zwei Hunde"))
    shard = tmp_path / "bitext" / "de" / "part-00000-of-00001.tfrecord"
    write_records(shard, pairs, ("src_raw", "tgt_raw"))
    _, (one, other), _ = run_job(tmp_path / "bitext", tmp_path / "out", count=1)
    assert one == ["one cat", "eine Katze", "zwei Hunde"]
    assert other == ["two dogs", "zwei Hunde", "eine Katze"]
