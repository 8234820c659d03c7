"""`labse mine` from text or vectors to pairs: results, stops in the middle, bad input."""

from __future__ import annotations

import gzip
import json
import lzma
import resource

import numpy as np
import pytest
from text_files import read_rows, write_lines
from tiny_text import sentences_of

from labse_tf.retrieval import approximate, search

MODEL = "dictionary_encoder:Dictionary"


@pytest.fixture
def thai_and_arabic(encoder, tmp_path):
    """Thai sentences, and Arabic ones the other way round, with duplicates and empty lines."""
    thai = sentences_of("th")
    arabic = sentences_of("ar")[::-1]
    source = write_lines(tmp_path / "th.txt.gz", [thai[0], "", *thai, f"  {thai[3]} ", " "])
    target = write_lines(tmp_path / "ar.txt.xz", [*arabic, arabic[5], ""])
    # Line 3 of the Thai file is its first sentence again; its translation is Arabic line 48.
    gold = write_lines(tmp_path / "gold.tsv", [f"{i + 3}\t{48 - i}" for i in range(48)])
    return source, target, gold


def test_mining_finds_all_translations(thai_and_arabic, tmp_path, succeeds):
    """And with a threshold that no score reaches, none."""
    *sides, gold = thai_and_arabic
    out, report = tmp_path / "pairs.tsv", tmp_path / "report.json"
    command = ("mine", MODEL, *sides, "--out", out, "--gold", gold, "--report", report)
    shown = succeeds(*command)
    rows, pairs = read_rows(out), zip(sentences_of("th"), sentences_of("ar"), strict=True)
    assert {(source, target) for _, source, target in rows} == set(pairs)
    # 1 to itself, 0.64 to the five of the same animal: means of (1 + 3 * 0.64) / 4.
    assert {score for score, _, _ in rows} == {f"{1 / 0.73:.6f}"}
    assert "source: 48 sentences in 52 lines (2 duplicates, 2 empty)\n" in shown
    assert "target: 48 sentences in 50 lines (1 duplicates, 1 empty)\n" in shown
    assert "precision 100.0, recall 100.0, F1 100.0" in shown
    facts = json.loads(report.read_text("utf-8"))
    assert facts["source"]["lines"] == 52 and facts["pairs"] == facts["gold"]["pairs"] == 48
    assert facts["search"] == {"index": "exact"} and facts["options"]["retrieval"] == "max"
    assert not (tmp_path / "pairs.tsv.work").exists()
    options = ("--threshold", 2, "--margin", "absolute", "--retrieval", "forward", "--overwrite")
    assert "F1 0.0 at threshold 2.0000\n0 pairs kept of 48 found" in succeeds(*command, *options)
    assert out.read_text() == ""


def test_vectors_made_before_give_the_same_and_load_no_model(
    thai_and_arabic, encoder, tmp_path, succeeds, refused
):
    source, target, gold = thai_and_arabic
    succeeds("mine", MODEL, source, target, "--out", tmp_path / "one.tsv")
    vectors = []
    for path, unpack in ((source, gzip.decompress), (target, lzma.decompress)):
        lines = unpack(path.read_bytes()).decode().split("\n")[:-1]
        vectors.append(tmp_path / f"{path.name}.npy")
        np.save(vectors[-1], encoder().encode([line.strip() for line in lines]))
    encoder.seen.clear()
    command = ("mine", source, target, "--embeddings", *vectors, "--recall", 1, "--out")
    for index in ("exact", "approximate"):
        out = tmp_path / f"{index}.tsv"
        succeeds(*command, out, "--index", index)
        assert out.read_text("utf-8") == (tmp_path / "one.tsv").read_text("utf-8")
    assert not encoder.seen
    np.save(vectors[1], np.load(vectors[1])[:-1])
    refused(f"{vectors[1]}: has 49 rows, but {target} has 50", *command, tmp_path / "no.tsv")
    assert not (tmp_path / "no.tsv").exists()


def test_lines_without_text_tabs_and_packed_pairs(tmp_path, succeeds, refused):
    """A line without text may have any vector; a tab in a sentence is a space in the table."""
    path = write_lines(tmp_path / "a.txt", ["one\tone", " ", "two"])
    vectors, out = tmp_path / "a.npy", tmp_path / "out.tsv.gz"
    command = ("mine", path, path, "--embeddings", vectors, vectors, "--margin", "absolute")
    np.save(vectors, np.array([[1, 0], [0, 0], [0, 1]], np.float32))
    succeeds(*command, "--out", out)
    assert gzip.decompress(out.read_bytes()) == b"1.000000\tone one\tone one\n1.000000\ttwo\ttwo\n"
    np.save(vectors, np.array([[1, 0], [0, 1], [0, 0]], np.float32))
    refused("a.npy:3: the vector in row 3 is", *command, "--out", tmp_path / "other.tsv")


@pytest.mark.parametrize("stop_after", [0, 48, 90])
def test_a_stop_while_embedding_loses_one_chunk_at_most(
    thai_and_arabic, encoder, tmp_path, labse, monkeypatch, stop_after, refused, succeeds
):
    """Work of other settings is refused, or replaced."""
    source, target, _ = thai_and_arabic
    monkeypatch.setattr("labse_tf.embedding.file._LINES_PER_CHUNK", 5)
    out = tmp_path / "pairs.tsv"
    command = ("mine", MODEL, source, target, "--out", out)
    monkeypatch.setattr(encoder, "stop_after", stop_after)
    assert labse(*command)[0] == 130 and not out.exists()
    # A row of which a part was written before the power went.
    for unfinished in (tmp_path / "pairs.tsv.work").glob("*.unfinished"):
        if unfinished.stat().st_size:
            with open(unfinished, "ab") as file:
                file.write(b"abc")
    monkeypatch.setattr(encoder, "stop_after", None)
    for name, others in (
        ("neighbours", (*command, "-k", 2)),
        ("dim", (*command, "--dim", 8)),
        ("source", ("mine", MODEL, target, target, "--out", out)),
    ):
        if stop_after:
            assert "pairs.tsv.work: holds the work of an int" in refused(f"({name})", *others)
    succeeds(*command)
    assert sorted(encoder.seen) == sorted([*sentences_of("th"), *sentences_of("ar")])
    assert len(read_rows(out)) == 48
    refused("pairs.tsv: the output exists already", *command)
    write_lines(source, sentences_of("th")[:40])
    succeeds(*command, "--overwrite")
    assert len(read_rows(out)) == 40


@pytest.mark.parametrize("index", ["exact", "approximate"])
def test_a_stop_while_searching_goes_on(
    thai_and_arabic, encoder, tmp_path, labse, monkeypatch, index
):
    source, target, _ = thai_and_arabic
    monkeypatch.setattr(search, "_SECONDS_BETWEEN_SAVES", -1)
    monkeypatch.setattr(approximate, "_LISTS_AT_ONCE", 8)
    options = {"rows": 10} if index == "exact" else {}
    module, name = (search, "search_blocks") if options else (approximate, "search_lists")
    real, starts = getattr(module, name), []

    def stopping(*arguments, start):
        starts.append(start)
        for count, end in enumerate(real(*arguments, start=start, **options)):
            if count == 2 and len(starts) == 2:
                raise KeyboardInterrupt
            yield end

    monkeypatch.setattr(module, name, stopping)
    command = ("mine", MODEL, source, target, "--index", index, "--recall", 1, "--out")
    assert labse(*command, tmp_path / "whole.tsv")[0] == 0
    assert labse(*command, tmp_path / "pairs.tsv")[0] == 130
    seen = len(encoder.seen)
    assert labse(*command, tmp_path / "pairs.tsv")[0] == 0
    assert starts == [0, 0, 20 if index == "exact" else 16]
    assert len(encoder.seen) == seen
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


@pytest.mark.parametrize("size", [2000, 3300])
def test_a_full_disk_is_said_and_what_was_written_serves(
    thai_and_arabic, encoder, tmp_path, labse, monkeypatch, size
):
    """In the vectors (3,200 bytes a side), or in the search's state.

    Writing beyond the limit fails as on a full disk, with another number of error.
    """
    source, target, _ = thai_and_arabic
    monkeypatch.setattr("labse_tf.embedding.file._LINES_PER_CHUNK", 5)
    out, before = tmp_path / "pairs.tsv", resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        status, _, error = labse("mine", MODEL, source, target, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 2 and f"{out}: cannot be written (File too large); make room" in error, error
    assert labse("mine", MODEL, source, target, "--out", out)[0] == 0
    assert len(read_rows(out)) == 48
    # The chunk that met the full disk is embedded twice.
    assert len(encoder.seen) <= 96 + 5


def test_gold_that_points_nowhere_is_refused_before_any_work(
    thai_and_arabic, encoder, tmp_path, refused
):
    source, target, path = thai_and_arabic
    for gold, message in (
        (["1\t1", "53\t1"], ":2: there is no line 53 in "),
        (["0\t1"], ":1: there is no line 0 in "),
        (["2\t1"], ":1: line 2 of "),
        (["-1\t1"], ":1: the source column is '-1', not the number of a line"),
        (["1\tแมว"], ":1: the target column is 'แมว', not the number of a line"),
        (["1"], ":1: one column where source<TAB>target is expected"),
        ([], ": the file is empty"),
    ):
        write_lines(path, gold)
        command = ("mine", MODEL, source, target, "--out", tmp_path / "out.tsv", "--gold", path)
        assert refused(f"labse: error: {path}{message}", *command).count("\n") == 1
    assert not encoder.seen


def test_text_that_cannot_be_mined_is_refused(encoder, tmp_path, refused):
    other = write_lines(tmp_path / "b.txt", ["x"])
    for lines, message in (
        ([], "a.txt: the file is empty"),
        (["", "  "], "a.txt: has no line with text"),
        (["one", "t\0wo"], "a.txt:2: the line has a NUL byte"),
        (["one", "", "nothing"], "a.txt:3: the model's vector for 'nothing' is not of unit length"),
    ):
        path = write_lines(tmp_path / "a.txt", lines)
        refused(message, "mine", MODEL, path, other, "--out", tmp_path / "o.tsv", "--overwrite")


def test_options_that_make_no_sense_are_refused(encoder, tmp_path, refused):
    path, out = write_lines(tmp_path / "a.txt", ["x"]), ("--out", tmp_path / "out.tsv")
    for options, message in (
        (["--neighbours", 0], "--neighbours is 0; give 1 or more"),
        (["--recall", 0], "--recall is 0.0; give more than 0"),
        (["--embeddings", "a", "b"], "3 names where SOURCE TARGET"),
        (["--dim", 0], "--dim is 0; give 1 or more"),
        (["--dim", 17], "has vectors of 16 dimensions, and --dim is 17; give 16 or less"),
        (["--report", tmp_path / "out.tsv"], "out.tsv: is the same file as --out"),
        (["--report", tmp_path], ": is a folder; name a file to write to"),
    ):
        refused(message, "mine", MODEL, path, path, *out, *options)
    for arguments, message in (
        (["a", "b", "--dim", 2], "--dim is for a MODEL, not for --embeddings"),
        ([tmp_path / "no.npy"] * 2, f"labse: error: {tmp_path}/no.npy: no such file"),
    ):
        refused(message, "mine", path, path, *out, "--embeddings", *arguments)
    assert not encoder.seen and sorted(tmp_path.iterdir()) == [path]
