"""`labse mine-negatives` end to end, on the small corpora of six languages."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tiny_text import FOREIGN, sentences_of

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files.outputs import locked
from labse_tf.systems.hard_negatives.mine import mine
from labse_tf.systems.hard_negatives.selection import text_key


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def command(bitext_dir, config_file, vocab_file):
    """Returns the command for a number of training steps."""

    def build(steps):
        settings = {
            "steps": steps,
            "batch_size": 32,
            "optimizer.learning_rate": 0.01,
            "optimizer.warmup_steps": 1,
            "loop.log_interval": 20,
            "loop.checkpoint_interval": 20,
        }
        overrides = [f"--set=train.{key}={value}" for key, value in settings.items()]
        overrides += ["--set=negatives.encoder.hidden_size=32"]
        overrides += ["--set=negatives.encoder.bigram_buckets=500"]
        return ["mine-negatives", str(bitext_dir), "--config", str(config_file), *overrides]

    return build


# An encoder that has hardly been trained finds all sentences alike.
ALL = ["--max-similarity", "1"]


@pytest.fixture(scope="module")
def mined(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("mined")
    assert main([*command(2), *ALL, "--run-dir", f"{folder}/run", "--out", f"{folder}/out"]) == 0
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


def test_a_finished_job_does_nothing_and_its_run_is_no_encoder(mined, command, tmp_path, capsys):
    before = times_of(mined / "out"), times_of(mined / "run" / "checkpoints")
    assert main([*command(2), *ALL, "--run-dir", f"{mined}/run", "--out", f"{mined}/out"]) == 0
    assert (times_of(mined / "out"), times_of(mined / "run" / "checkpoints")) == before
    assert main(["export", f"{mined}/run", "--out", f"{tmp_path}/model"]) == 2
    assert "no finished checkpoint of the whole encoder" in capsys.readouterr().err


def test_a_stopped_job_goes_on(mined, bitext_dir, tmp_path):
    """Two languages are missing, one of them in the report: the same bytes come out."""
    out = tmp_path / "out"
    shutil.copytree(mined / "out", out)
    report = json.loads((out / "report.json").read_text("utf-8"))
    del report["languages"]["ja"]
    (out / "report.json").write_text(json.dumps(report), "utf-8")
    (out / "ja.tsv.gz").write_bytes(b"broken")
    (out / "th.tsv.gz").unlink()
    command = ["mine-negatives", str(bitext_dir), "--model", f"{mined}/run", *ALL]
    assert main([*command, "--out", str(out)]) == 0
    for path in (mined / "out").iterdir():
        assert (out / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_the_negatives_are_near(command, tmp_path):
    """Half of the words of a sentence are in its negatives: at random 1 of 4 shares one."""
    assert main([*command(60), "--run-dir", f"{tmp_path}/run", "--out", f"{tmp_path}/out"]) == 0
    shared = []
    for language in FOREIGN:
        targets = sentences_of(language)
        for number, row in enumerate(rows(tmp_path / "out" / f"{language}.tsv.gz")):
            for text in filter(None, row[2:]):
                place = targets.index(text)
                shared.append(place // 6 == number // 6 or place % 6 == number % 6)
    assert np.mean(shared) > 0.6
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    for found in (facts["similarity"] for facts in report["languages"].values()):
        assert found["negatives"][-1] <= found["translation"]


def test_a_model_dir_mines_too(model_dir, bitext_dir, tmp_path):
    arguments = ["mine-negatives", bitext_dir / "de.tsv", "--model", model_dir, "--count", 2]
    assert main([*map(str, arguments), "--out", f"{tmp_path}/out"]) == 0
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
    folder = tmp_path / "corpus"
    folder.mkdir()
    pairs = [
        ("one cat", "eine Katze"), ("One cat!", "Katze"), ("two cats", "zwei Katzen"),
        ("ten dogs", "zehn Hunde"), ("one cats", "eine Katzen"), ("a mat", "Matte"),
    ]  # fmt: skip
    (folder / "de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    return folder


def run_job(corpus, out, **changes):
    encoder = LetterEncoder()
    arguments = {"model_files": [], "count": 2, "max_similarity": 1.0} | changes
    report = mine([str(corpus)], out, encoder, **arguments)
    return report, rows(out / "de.tsv.gz"), encoder


def test_a_second_job_is_refused_and_what_a_killed_one_left_goes(corpus, tmp_path):
    out = tmp_path / "out"
    report, found, _ = run_job(corpus, out, pool_size=2)
    content = (out / "de.tsv.gz").read_bytes()
    before = times_of(out)
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


def test_no_translation_of_the_same_source_is_a_negative(corpus, tmp_path):
    report, found, encoder = run_job(corpus, tmp_path / "out")
    of = {(row[0], row[1]): row[2:] for row in found}
    assert len(of) == 6
    # Not "Katze", which translates "One cat!".
    assert of["one cat", "eine Katze"] == of["One cat!", "Katze"]
    assert not {"eine Katze", "Katze"} & set(of["one cat", "eine Katze"])
    assert report["languages"]["de"]["sources"] == 5
    # Each text is embedded once.
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 5 + 6


def test_parts_keep_the_pairs_of_a_source_together(corpus, tmp_path):
    _, whole, _ = run_job(corpus, tmp_path / "whole")
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


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"count": 0}, "--count is 0"),
        ({"pool_size": 1}, "--pool-size is 1"),
        ({"max_similarity": 1.5}, "--max-similarity is 1.5"),
    ],
)
def test_what_cannot_be_mined_with(corpus, tmp_path, changes, problem):
    with pytest.raises(InputError, match=problem):
        run_job(corpus, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_refusals(capsys, corpus, tmp_path, vocab_file, trained_run):
    out = tmp_path / "out"

    def refused(*arguments):
        capsys.readouterr()
        assert main(["mine-negatives", *map(str, arguments)]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    run = ["--run-dir", tmp_path / "run", "--out", out]
    trained = [*run, "--vocab", vocab_file]
    model = ["--out", out, "--model"]
    assert "either --run-dir" in refused(corpus, "--out", out)
    assert "either --run-dir" in refused(corpus, *run, "--model", "m")
    assert "tokenizer.vocab_file" in refused(corpus, *run)
    assert "no such file" in refused(tmp_path / "none", *trained)
    assert "is not a model dir" in refused(corpus, *model, tmp_path / "none")
    assert "no checkpoint of an averaging encoder" in refused(corpus, *model, trained_run)
    assert "--set has no effect with" in refused(corpus, *model, trained_run, "--set", "seed=1")
    # Before a model is trained.
    assert "--max-similarity is 9" in refused(corpus, *trained, "--max-similarity", 9)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    assert "not empty" in refused(corpus, *trained, "--out", tmp_path / "taken")
    assert not out.exists() and not (tmp_path / "run").exists()


def test_a_broken_line_is_named_and_leaves_no_file(corpus, tmp_path):
    with open(corpus / "de.tsv", "a", encoding="utf-8") as file:
        file.write("no tab\n")
    with pytest.raises(InputError, match="one column") as caught:
        run_job(corpus, tmp_path / "out")
    assert caught.value.line == 7
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.json"]


def test_tabs_and_line_ends_of_shards_become_spaces(tmp_path):
    """A shard's text may hold what would end a column."""
    folder = tmp_path / "bitext" / "de"
    folder.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(folder / "part-00000-of-00001.tfrecord")) as writer:
        for source, target in (("one\tcat", "eine\nKatze"), ("two dogs", "zwei Hunde")):
            example = tf.train.Example()
            for name, text in (("src_raw", source), ("tgt_raw", target)):
                example.features.feature[name].bytes_list.value.append(text.encode())
            writer.write(example.SerializeToString())
    _, found, _ = run_job(tmp_path / "bitext", tmp_path / "out", count=1)
    assert found == [
        ["one cat", "eine Katze", "zwei Hunde"], ["two dogs", "zwei Hunde", "eine Katze"]
    ]  # fmt: skip
