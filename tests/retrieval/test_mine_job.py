"""`labse mine` and `labse score` from text to pairs: results, stops in the middle, bad input."""

from __future__ import annotations

import gzip
import json
import lzma
import resource
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from tiny_text import sentences_of

from labse_tf import embedding_job
from labse_tf.cli.main import main
from labse_tf.retrieval import job as jobs
from labse_tf.retrieval import search

# Words of a language -> numbers of animal and thing: a dictionary is a perfect model of these.
ENCODER = """
import numpy as np
from tiny_text import LANGUAGES, sentences_of

MEANING = {text: i for language in LANGUAGES for i, text in enumerate(sentences_of(language))}

class Dictionary:
    dim = 16
    seen = []
    stop_after = None

    def encode(self, texts):
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        self.seen.extend(texts)
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text):
        vector = np.zeros(16, np.float32)
        if text == "nothing":
            return vector
        place = MEANING.get(text, hash_of(text))
        vector[place // 6 % 8], vector[8 + place % 6] = 0.8, 0.6
        return vector

def hash_of(text):
    return sum(map(ord, text))
"""


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """The class behind the model `dictionary:Dictionary`; the current folder is its."""
    (tmp_path / "dictionary.py").write_text(ENCODER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "dictionary", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    import dictionary

    return dictionary.Dictionary


def write(path, lines):
    text = "".join(f"{line}\n" for line in lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def run(capsys, *arguments):
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def mined(path):
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").split("\n")[:-1]]


MODEL = "dictionary:Dictionary"


@pytest.fixture
def thai_and_arabic(encoder, tmp_path):
    """Thai sentences, and Arabic ones the other way round, with duplicates and empty lines."""
    thai = sentences_of("th")
    arabic = sentences_of("ar")[::-1]
    source = write(tmp_path / "th.txt.gz", [thai[0], "", *thai, f"  {thai[3]} ", " "])
    target = write(tmp_path / "ar.txt.xz", [*arabic, arabic[5], ""])
    # Line 3 of the Thai file is its first sentence again; its translation is Arabic line 48.
    gold = write(tmp_path / "gold.tsv", [f"{i + 3}\t{48 - i}" for i in range(48)])
    return source, target, gold


def test_mining_finds_all_translations(thai_and_arabic, tmp_path, capsys):
    source, target, gold = thai_and_arabic
    out, report = tmp_path / "pairs.tsv", tmp_path / "report.json"
    status, shown, error = run(
        capsys, "mine", MODEL, source, target, "--out", out, "--gold", gold, "--report", report
    )
    assert status == 0, error
    rows = mined(out)
    assert {(s, t) for _, s, t in rows} == set(
        zip(sentences_of("th"), sentences_of("ar"), strict=True)
    )
    # 1 to itself, 0.64 to the five of the same animal: means of (1 + 3 * 0.64) / 4.
    assert {score for score, _, _ in rows} == {f"{1 / 0.73:.6f}"}
    assert "source: 48 sentences in 52 lines (2 duplicates, 2 empty)\n" in shown
    assert "target: 48 sentences in 50 lines (1 duplicates, 1 empty)\n" in shown
    assert "precision 100.0, recall 100.0, F1 100.0" in shown
    facts = json.loads(report.read_text("utf-8"))
    assert facts["source"]["lines"] == 52 and facts["pairs"] == facts["gold"]["pairs"] == 48
    assert facts["search"] == {"index": "exact"} and facts["options"]["one_to_one"] is True
    assert not (tmp_path / "pairs.tsv.work").exists()


def test_vectors_made_before_give_the_same_and_load_no_model(
    thai_and_arabic, encoder, tmp_path, capsys
):
    source, target, gold = thai_and_arabic
    run(capsys, "mine", MODEL, source, target, "--out", tmp_path / "one.tsv")
    for path, language_lines in ((source, 52), (target, 50)):
        opener = gzip.open if path.suffix == ".gz" else lzma.open
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")[:-1]
        assert len(lines) == language_lines
        np.save(tmp_path / f"{path.name}.npy", encoder().encode([line.strip() for line in lines]))
    encoder.seen.clear()
    vectors = [tmp_path / f"{path.name}.npy" for path in (source, target)]
    for index in ("exact", "approximate"):
        out = tmp_path / f"{index}.tsv"
        status, _, error = run(
            capsys,
            "mine",
            source,
            target,
            "--embeddings",
            *vectors,
            "--out",
            out,
            "--index",
            index,
            "--recall",
            1,
        )
        assert status == 0, error
        assert out.read_text("utf-8") == (tmp_path / "one.tsv").read_text("utf-8")
    assert not encoder.seen
    np.save(vectors[1], np.load(vectors[1])[:-1])
    status, _, error = run(
        capsys, "mine", source, target, "--embeddings", *vectors, "--out", tmp_path / "no.tsv"
    )
    assert status == 2
    assert error.startswith(f"labse: error: {vectors[1]}: has 49 rows, but {target} has 50 lines")
    assert not (tmp_path / "no.tsv").exists()


def test_thresholds_keep_what_reaches_them(thai_and_arabic, tmp_path, capsys):
    source, target, gold = thai_and_arabic
    out = tmp_path / "pairs.tsv"
    status, shown, _ = run(
        capsys,
        "mine",
        MODEL,
        source,
        target,
        "--out",
        out,
        "--gold",
        gold,
        "--threshold",
        2,
        "--margin",
        "absolute",
        "--no-one-to-one",
    )
    assert (status, out.read_text()) == (0, "")
    assert (
        "precision 0.0, recall 0.0, F1 0.0 at threshold 2.0000\n0 pairs kept of 48 found" in shown
    )


def test_a_tab_in_a_sentence_is_a_space_in_the_table(encoder, tmp_path, capsys):
    source = write(tmp_path / "a.txt", ["one\ttwo"])
    status, _, error = run(capsys, "mine", MODEL, source, source, "--out", tmp_path / "out.tsv")
    assert status == 0, error
    assert mined(tmp_path / "out.tsv") == [("1.000000", "one two", "one two")]


# Stops in the middle.


@pytest.mark.parametrize("stop_after", [0, 10, 50, 90])
def test_a_stop_while_embedding_loses_one_chunk_at_most(
    thai_and_arabic, encoder, tmp_path, capsys, monkeypatch, stop_after
):
    source, target, _ = thai_and_arabic
    monkeypatch.setattr(embedding_job, "_LINES_A_CHUNK", 5)
    out = tmp_path / "pairs.tsv"
    command = ("mine", MODEL, source, target, "--out", out)
    monkeypatch.setattr(encoder, "stop_after", stop_after)
    status, _, error = run(capsys, *command)
    assert (status, error) == (130, error) and "goes on from here" in error
    assert not out.exists()
    # A row of which a part was written before the power went.
    for unfinished in (tmp_path / "pairs.tsv.work").glob("*.unfinished"):
        if unfinished.stat().st_size:
            with open(unfinished, "ab") as file:
                file.write(b"abc")
    monkeypatch.setattr(encoder, "stop_after", None)
    assert run(capsys, *command)[0] == 0
    assert sorted(encoder.seen) == sorted([*sentences_of("th"), *sentences_of("ar")])
    assert len(mined(out)) == 48


@pytest.mark.parametrize("index", ["exact", "approximate"])
def test_a_stop_while_searching_goes_on(
    thai_and_arabic, encoder, tmp_path, capsys, monkeypatch, index
):
    source, target, _ = thai_and_arabic
    options = ("--index", index, "--recall", 1)
    run(capsys, "mine", MODEL, source, target, "--out", tmp_path / "whole.tsv", *options)
    from labse_tf.retrieval import approximate

    monkeypatch.setattr(search, "_SECONDS_BETWEEN_SAVES", -1)
    monkeypatch.setattr(approximate, "_LISTS_AT_ONCE", 8)
    steps, starts = search._run, []

    def stop_after_two(blocks, folder, *rest, **kwargs):
        def two():
            for count, end in enumerate(blocks):
                if count == 2:
                    raise KeyboardInterrupt
                yield end

        starts.append(rest[2])
        steps(two() if len(starts) == 1 else blocks, folder, *rest, **kwargs)

    real = search.search_blocks
    monkeypatch.setattr(search, "search_blocks", lambda *a, **k: real(*a, **k, rows=10))
    monkeypatch.setattr(search, "_run", stop_after_two)
    command = ("mine", MODEL, source, target, "--out", tmp_path / "pairs.tsv", *options)
    assert run(capsys, *command)[0] == 130
    seen = len(encoder.seen)
    assert run(capsys, *command)[0] == 0
    assert starts == [0, 20 if index == "exact" else 16]
    assert len(encoder.seen) == seen
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_work_of_other_settings_is_refused_or_replaced(
    thai_and_arabic, encoder, tmp_path, capsys, monkeypatch
):
    source, target, _ = thai_and_arabic
    command = ("mine", MODEL, source, target, "--out", tmp_path / "pairs.tsv")
    monkeypatch.setattr(encoder, "stop_after", 48)
    assert run(capsys, *command)[0] == 130
    monkeypatch.setattr(encoder, "stop_after", None)
    status, _, error = run(capsys, *command, "-k", 2)
    assert status == 2
    assert (
        "pairs.tsv.work: holds the work of a stopped job with other settings (neighbours)" in error
    )
    write(source, sentences_of("th")[:40])
    status, _, error = run(capsys, *command)
    assert status == 2 and "(source)" in error
    assert run(capsys, *command, "--overwrite")[0] == 0
    assert len(mined(tmp_path / "pairs.tsv")) == 40
    status, _, error = run(capsys, *command)
    assert status == 2 and "pairs.tsv: the output exists already" in error


@contextmanager
def files_of_at_most(size):
    """Writing beyond fails as on a full disk, with another number of error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [2000, 3300])
def test_a_full_disk_is_said_and_what_was_written_serves(
    thai_and_arabic, encoder, tmp_path, capsys, monkeypatch, size
):
    """In the vectors (3,200 bytes a side), or in the search's state."""
    source, target, _ = thai_and_arabic
    monkeypatch.setattr(embedding_job, "_LINES_A_CHUNK", 5)
    out = tmp_path / "pairs.tsv"
    with files_of_at_most(size):
        status, _, error = run(capsys, "mine", MODEL, source, target, "--out", out)
    message = (
        f"labse: error: {out}: cannot be written (File too large); make room; the same command"
    )
    assert status == 2 and message in error, error
    assert run(capsys, "mine", MODEL, source, target, "--out", out)[0] == 0
    assert len(mined(out)) == 48
    # The chunk that met the full disk is embedded twice.
    assert len(encoder.seen) <= 96 + 5


# Bad input.


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["1\t1", "53\t1"], ":2: there is no line 53 in "),
        (["1\t51"], ":1: there is no line 51 in "),
        (["0\t1"], ":1: there is no line 0 in "),
        (["2\t1"], ":1: line 2 of "),
        (["-1\t1"], ":1: the source column is '-1', not the number of a line"),
        (["1\tแมว"], ":1: the target column is 'แมว', not the number of a line"),
        (["1"], ":1: one column where source<TAB>target is expected"),
        ([], ": the file is empty"),
    ],
)
def test_gold_that_points_nowhere_is_refused_before_any_work(
    thai_and_arabic, encoder, tmp_path, capsys, gold, message
):
    source, target, path = thai_and_arabic
    write(path, gold)
    status, out, error = run(
        capsys, "mine", MODEL, source, target, "--out", tmp_path / "out.tsv", "--gold", path
    )
    assert (status, out) == (2, "")
    assert error.startswith(f"labse: error: {path}{message}") and error.count("\n") == 1
    assert not encoder.seen


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a.txt: the file is empty"),
        (["", "  "], "a.txt: has no line with text"),
        (["one", "t\0wo"], "a.txt:2: the line has a NUL byte"),
        (["one", "nothing"], "the model gives 'nothing' no vector of unit length"),
    ],
)
def test_text_that_cannot_be_mined_is_refused(encoder, tmp_path, capsys, lines, message):
    path, other = write(tmp_path / "a.txt", lines), write(tmp_path / "b.txt", ["x"])
    status, _, error = run(capsys, "mine", MODEL, path, other, "--out", tmp_path / "out.tsv")
    assert status == 2
    assert message in error and error.splitlines()[-1].startswith("labse: error: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--neighbours", 0], "--neighbours is 0; give 1 or more"),
        (["--recall", 0], "--recall is 0.0; give more than 0"),
        (["--margin", "cosine"], "--margin is 'cosine'; give one of absolute, distance, ratio"),
        (["--retrieval", "both"], "--retrieval is 'both'; give one of forward, "),
        (["--index", "hnsw"], "--index is 'hnsw'; give one of auto, exact, approximate"),
        (["extra"], "4 names where MODEL SOURCE TARGET are expected"),
    ],
)
def test_options_that_make_no_sense_are_refused(encoder, tmp_path, capsys, options, message):
    path = write(tmp_path / "a.txt", ["x"])
    command = ("mine", MODEL, path, path, *options, "--out", tmp_path / "out.tsv")
    status, _, error = run(capsys, *command)
    assert status == 2 and message in error


# Scores.


def pairs_file(tmp_path, rows):
    return write(tmp_path / "pairs.tsv", ["\t".join(row) for row in rows])


PAIRS = [
    ("猫と家。", "Katze und Haus.", "more"),
    ("猫と家。", "Hund und Haus."),
    ("犬と本。", "Maus und Mond."),
]


def test_scores_are_put_in_front_and_lines_stay_as_they_are(encoder, tmp_path, capsys, caplog):
    path = pairs_file(tmp_path, PAIRS)
    status, out, _ = run(capsys, "score", MODEL, path)
    assert status == 0
    assert out.splitlines() == [
        "\t".join([score, *row])
        for score, row in zip(("1.000000", "0.360000", "0.000000"), PAIRS, strict=True)
    ]
    # A sentence that comes twice is embedded once.
    assert len(encoder.seen) == 5
    status, out, error = run(
        capsys, "score", MODEL, path, "--threshold", 0.359, "--out", tmp_path / "out.tsv"
    )
    assert (status, out) == (0, "")
    assert [row[0] for row in mined(tmp_path / "out.tsv")] == ["1.000000", "0.360000"]
    assert "2 pairs written of 3" in caplog.text


def test_margin_scores_by_hand(encoder, tmp_path, capsys):
    """Sources A and B, targets 1, 2, 3; the cosines are 1, 0.36, 0 and 0, 0.64, 0."""
    path, out = pairs_file(tmp_path, PAIRS), tmp_path / "out.tsv"
    status, _, error = run(
        capsys, "score", MODEL, path, "--margin", "distance", "-k", 2, "--out", out
    )
    assert status == 0, error
    means_of_sources = {"猫と家。": 0.68, "犬と本。": 0.32}
    means_of_targets = {"Katze und Haus.": 0.5, "Hund und Haus.": 0.5, "Maus und Mond.": 0.0}
    cosines = [1.0, 0.36, 0.0]
    expected = [
        cosine - (means_of_sources[row[0]] + means_of_targets[row[1]]) / 2
        for cosine, row in zip(cosines, PAIRS, strict=True)
    ]
    assert [tuple(row[1:]) for row in mined(out)] == PAIRS
    np.testing.assert_allclose([float(row[0]) for row in mined(out)], expected, atol=2e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b"), ("a",)], "pairs.tsv:2: one column where source<TAB>target is expected"),
        ([("a", " ")], "pairs.tsv:1: the target column is empty"),
        ([("a", "b\0")], "pairs.tsv:1: the line has a NUL byte"),
        ([], "pairs.tsv: the file is empty"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--margin", "ratio"]])
def test_pairs_that_are_none_are_refused(encoder, tmp_path, capsys, rows, message, options):
    path, out = pairs_file(tmp_path, rows), tmp_path / "out.tsv"
    status, _, error = run(capsys, "score", MODEL, path, "--out", out, *options)
    assert status == 2 and message in error and not out.exists()


def test_margins_need_files(encoder, tmp_path, capsys):
    path = pairs_file(tmp_path, PAIRS)
    for arguments in ((path,), ("-", "--out", tmp_path / "out.tsv")):
        status, _, error = run(capsys, "score", MODEL, *arguments, "--margin", "ratio")
        assert status == 2 and "name files for the pairs and for --out" in error


def test_options_of_the_job_are_those_of_the_pairs():
    assert jobs.Options().is_one_to_one is True
    assert jobs.Options(retrieval="forward").is_one_to_one is False
    assert jobs.Options(retrieval="forward", one_to_one=True).is_one_to_one is True
