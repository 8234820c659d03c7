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
from labse_tf.systems.hard_negatives.pool import text_key

pytestmark = pytest.mark.slow

STEPS = 60


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


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def report_of(folder):
    return json.loads((folder / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def command(bitext_dir, config_file, vocab_file):
    settings = {
        "steps": STEPS,
        "batch_size": 32,
        "optimizer.learning_rate": 0.01,
        "optimizer.warmup_steps": 5,
        "loop.log_interval": 20,
        "loop.checkpoint_interval": 20,
        "loop.checkpoints_kept": 3,
    }
    overrides = [f"--set=train.{key}={value}" for key, value in settings.items()]
    overrides += ["--set=negatives.encoder.hidden_size=32"]
    overrides += ["--set=negatives.encoder.bigram_buckets=500"]
    return ["mine-negatives", str(bitext_dir), "--config", str(config_file), *overrides]


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory, config_file):
    """A run of the whole encoder."""
    path = tmp_path_factory.mktemp("untrained") / "run"
    settings = ["--set", "train.steps=0", "--set", "encoder.num_layers=1"]
    settings += ["--set", "pretrain.stage_steps=[1]"]
    assert main(["train", str(config_file), "--run-dir", str(path), *settings]) == 0
    return path


@pytest.fixture(scope="module")
def mined(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("mined")
    places = ["--run-dir", str(folder / "run"), "--out", str(folder / "out")]
    assert main([*command, *places]) == 0
    return folder


def test_every_pair_gets_negatives(mined):
    names = {path.name for path in (mined / "out").iterdir()}
    assert names == {"report.json", *(f"{language}.tsv.gz" for language in FOREIGN)}
    for language in FOREIGN:
        sources, targets = sentences_of("en"), sentences_of(language)
        found = rows(mined / "out" / f"{language}.tsv.gz")
        assert [row[:2] for row in found] == list(map(list, zip(sources, targets, strict=True)))
        for row in found:
            wrong = [text for text in row[2:] if text]
            assert len(row) == 5 and len(set(wrong)) == len(wrong)
            assert set(wrong) <= set(targets) - {row[1]}


def test_the_negatives_are_near(mined):
    """Half of the words of a sentence are in its negatives: at random 1 of 4 shares one."""
    shared = []
    for language in FOREIGN:
        targets = sentences_of(language)
        for number, row in enumerate(rows(mined / "out" / f"{language}.tsv.gz")):
            for text in filter(None, row[2:]):
                place = targets.index(text)
                shared.append(place // 6 == number // 6 or place % 6 == number % 6)
    assert np.mean(shared) > 0.6


def test_the_report(mined):
    report = report_of(mined / "out")
    assert report["settings"]["count"] == 3 and set(report["languages"]) == set(FOREIGN)
    for language, facts in report["languages"].items():
        assert facts["pairs"] == facts["sources"] == facts["targets"] == 48
        by_number = np.bincount(
            [3 - row[2:].count("") for row in rows(mined / "out" / f"{language}.tsv.gz")],
            minlength=4,
        )
        assert facts["pairs_by_negatives"] == by_number.tolist()
        nearest = facts["similarity"]["negatives"]
        assert nearest == sorted(nearest, reverse=True)
        assert -1 <= nearest[-1] <= facts["similarity"]["translation"] <= 1


def test_the_run_cannot_be_taken_for_an_encoder(mined, tmp_path, capsys):
    assert main(["export", str(mined / "run"), "--out", str(tmp_path / "model")]) == 2
    assert "no finished checkpoint of the whole encoder" in capsys.readouterr().err


def test_a_finished_job_does_nothing(mined, command):
    before = times_of(mined / "out"), times_of(mined / "run" / "checkpoints")
    places = ["--run-dir", str(mined / "run"), "--out", str(mined / "out")]
    assert main([*command, *places]) == 0
    assert (times_of(mined / "out"), times_of(mined / "run" / "checkpoints")) == before


def test_a_stopped_job_goes_on(mined, command, tmp_path):
    """Two languages are missing, one of them in the report: the same bytes come out."""
    shutil.copytree(mined / "out", tmp_path / "out")
    report = report_of(tmp_path / "out")
    del report["languages"]["ja"]
    (tmp_path / "out" / "report.json").write_text(json.dumps(report), "utf-8")
    (tmp_path / "out" / "ja.tsv.gz").write_bytes(b"broken")
    (tmp_path / "out" / "th.tsv.gz").unlink()
    model = ["--model", str(mined / "run"), "--out", str(tmp_path / "out")]
    assert main([*command[:2], *model]) == 0
    for path in (mined / "out").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_training_goes_on_from_a_checkpoint(mined, command, tmp_path):
    """As if it had been killed after step 40: the same weights come out, and the same negatives."""
    shutil.copytree(mined / "run", tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints" / "averaging"
    for path in folder.glob(f"ckpt-{STEPS}.*"):
        path.unlink()
    state = 'model_checkpoint_path: "ckpt-40"\nall_model_checkpoint_paths: "ckpt-40"\n'
    (folder / "checkpoint").write_text(state)
    places = ["--run-dir", str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    assert main([*command, *places]) == 0
    last = f"checkpoints/averaging/ckpt-{STEPS}"
    found, expected = (
        tf.train.load_checkpoint(str(folder / last)) for folder in (tmp_path / "run", mined / "run")
    )
    names = [name for name in expected.get_variable_to_shape_map() if "VARIABLE_VALUE" in name]
    assert len(names) > 20
    for name in names:
        if "save_counter" not in name:
            one, other = found.get_tensor(name), expected.get_tensor(name)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6, err_msg=name)
    for language in FOREIGN:
        name = f"out/{language}.tsv.gz"
        assert (tmp_path / name).read_bytes() == (mined / name).read_bytes()


def test_a_model_dir_mines_too(untrained_run, bitext_dir, tmp_path):
    model_dir, out = tmp_path / "model", tmp_path / "out"
    options = ("--no-verify", "--format", "hub")
    assert main(["export", str(untrained_run), "--out", str(model_dir), *options]) == 0
    arguments = ["mine-negatives", bitext_dir / "de.tsv", "--model", model_dir, "--out", out]
    assert main([str(argument) for argument in [*arguments, "--count", "2"]]) == 0
    assert {path.name for path in out.iterdir()} == {"de.tsv.gz", "report.json"}
    assert all(len(row) == 4 for row in rows(out / "de.tsv.gz"))


# The job alone, with an encoder of letters.


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


def test_the_same_input_gives_the_same_bytes(corpus, tmp_path):
    for name in ("one", "other"):
        run_job(corpus, tmp_path / name, pool_size=3)
    one, other = (tmp_path / name / "de.tsv.gz" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_other_settings_are_refused(corpus, tmp_path):
    run_job(corpus, tmp_path / "out")
    before = (tmp_path / "out" / "de.tsv.gz").read_bytes()
    with pytest.raises(InputError, match=r"other settings \(count\)"):
        run_job(corpus, tmp_path / "out", count=3)
    assert (tmp_path / "out" / "de.tsv.gz").read_bytes() == before
    _, found, _ = run_job(corpus, tmp_path / "out", count=3, overwrite=True)
    assert all(len(row) == 5 for row in found)


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


def refused(capsys, *arguments):
    capsys.readouterr()
    assert main(["mine-negatives", *map(str, arguments)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_refusals(capsys, corpus, tmp_path, vocab_file, untrained_run):
    out = tmp_path / "out"
    assert "either --run-dir" in refused(capsys, corpus, "--out", out)
    both = ["--run-dir", tmp_path / "run", "--model", "m"]
    assert "either --run-dir" in refused(capsys, corpus, "--out", out, *both)
    run = ["--run-dir", tmp_path / "run", "--out", out]
    assert "tokenizer.vocab_file" in refused(capsys, corpus, *run)
    assert "no such file" in refused(capsys, tmp_path / "none", "--vocab", vocab_file, *run)
    missing = ["--model", tmp_path / "none", "--out", out]
    assert "is not a model dir" in refused(capsys, corpus, *missing)
    other = ["--model", untrained_run, "--out", out]
    assert "no checkpoint of an averaging encoder" in refused(capsys, corpus, *other)
    idle = ["--model", untrained_run, "--out", out, "--set", "seed=1"]
    assert "--set has no effect with --model" in refused(capsys, corpus, *idle)
    # Before a model is trained.
    trained = [*run, "--vocab", vocab_file]
    assert "--max-similarity is 9" in refused(capsys, corpus, *trained, "--max-similarity", 9)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    taken = ["--run-dir", tmp_path / "run", "--vocab", vocab_file, "--out", tmp_path / "taken"]
    assert "not empty" in refused(capsys, corpus, *taken)
    assert not out.exists() and not (tmp_path / "run").exists()


def test_a_folder_with_something_else_is_refused(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        run_job(corpus, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


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
