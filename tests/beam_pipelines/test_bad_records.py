"""Damaged input: counted, named and left out as far as the user allows."""

import bz2
import gzip
import io
import json
import lzma
import random
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from text_files import read_corpus

from beam_pipelines import filter_bitext, filter_monolingual
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import encode_example, write_records
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import describe

COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
COMPRESS[".zst"] = zstandard.compress
GOOD = "Ein ganzer, guter Satz."


STREAM = io.BytesIO()
ROWS = ({"text": GOOD}, {"words": GOOD}, {"text": GOOD + "!"}, {"text": GOOD + "\0"})
write_records(STREAM, list(map(encode_example, ROWS)))
UNREADABLE = "the TFRecord file cannot be read (record"
# Name -> content, records that are good, and the line and problem of the bad ones.
DAMAGED = [f"{UNREADABLE} 2: no feature 'text')", "record 4 holds a NUL byte"]
LATIN = f"{GOOD}\nGrüße aus dem Norden\n{GOOD}!\n".encode("latin-1")
BAD = {
    "de.txt": (LATIN, 2, [(2, "invalid UTF-8 at byte 2 of the line")]),
    "nul/de.txt": (f"{GOOD}\n{GOOD}\0\n".encode(), 1, [(2, "the line holds a NUL byte")]),
    "empty/de.txt": (b"", 0, [(None, "the file is empty")]),
    "de.tfrecord": (
        STREAM.getvalue() + b"cut",
        2,
        [(None, problem) for problem in (*DAMAGED, f"{UNREADABLE} 5 is damaged)")],
    ),
}


def test_bad_records_are_counted_and_named(tmp_path):
    expected = []
    for name, (content, _, bad) in BAD.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        expected += [{"file": str(path), "line": line, "problem": what} for line, what in bad]
        with pytest.raises(InputError) as caught:
            list(read_file(describe(str(path))))
        assert (caught.value.path, caught.value.line, caught.value.problem) == (str(path), *bad[0])
    options = {"max_bad_records": len(expected)}
    report = filter_monolingual.run([str(tmp_path / "in")], str(tmp_path / "out"), **options)
    row = report["languages"]["de"]
    assert row["dropped"]["bad_record"] == len(expected)
    assert row["read"] == len(expected) + sum(good for _, good, _ in BAD.values())
    assert row["kept"] + row["dropped"]["duplicate"] + len(expected) == row["read"]
    assert sorted(map(str, report["bad_records"])) == sorted(map(str, expected))


@pytest.mark.slow
@pytest.mark.parametrize("extension", COMPRESS)
def test_what_came_before_the_damage_is_kept(tmp_path, extension):
    """The lines are such that a block of the compression (900 kB in bz2) ends before the damage."""
    generator = random.Random(1)
    lines = [f"{generator.random()} {generator.random()} größer" for _ in range(60_000)]
    data = COMPRESS[extension]("".join(f"{line}\n" for line in lines).encode())
    path = tmp_path / f"de.txt{extension}"
    path.write_bytes(data[: len(data) * 3 // 4])
    report = filter_monolingual.run([str(path)], str(tmp_path / "out"), max_bad_records=1)
    [bad] = report["bad_records"]
    kept = report["total"]["kept"]
    # The line that was cut is not among those kept.
    assert 20_000 < kept == bad["line"] - 1 < 60_000
    assert "damaged or truncated" in bad["problem"]
    assert {record.text for record in read_corpus(tmp_path / "out")} == set(lines[:kept])


def test_moses_pairs_stay_aligned(tmp_path):
    (tmp_path / "N.de-en.de").write_bytes(b"eins\nzw\xffei\ndrei\nvier\nf\xffnf\n")
    (tmp_path / "N.de-en.en").write_bytes(b"one\ntwo\nth\0ree\nfour\nf\0ve\n")
    report = filter_bitext.run([str(tmp_path)], str(tmp_path / "out"), max_bad_records=3)
    found = {record[:2] for record in read_corpus(tmp_path / "out")}
    assert found == {("one", "eins"), ("four", "vier")}
    places = [(bad["file"][-2:], bad["line"]) for bad in report["bad_records"]]
    assert places == [("de", 2), ("de", 5), ("en", 3)]


def test_rows_of_parquet(tmp_path):
    columns = {"text": [GOOD, None, GOOD + "\0", GOOD + "!"], "language_code": ["de", "de"] * 2}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    report = filter_monolingual.run([str(tmp_path)], str(tmp_path / "out"), max_bad_records=2)
    assert report["languages"]["de"]["kept"] == 2
    # The file's name tells no language, and the rows are not trusted to.
    row = report["languages"]["und"]
    assert (row["read"], row["kept"], row["dropped"]["bad_record"]) == (2, 0, 2)
    problems = ["row 2 has no value in the column 'text'", "row 3 holds a NUL byte"]
    assert [bad["problem"] for bad in report["bad_records"]] == problems


def test_bad_records_of_all_files_add_up_and_the_first_are_listed(tmp_path, capfd):
    for language in ("de", "fr", "nl"):
        (tmp_path / f"{language}.txt").write_bytes(f"{GOOD}\n".encode() + b"\xff\n" * 50)
    args = ["corpus", "filter-monolingual", f"{tmp_path}/??.txt", "--out", f"{tmp_path}/out"]
    assert main([*args, "--max-bad-records", "149"]) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    for line in (2, 3, 4):
        assert f"{tmp_path}/de.txt:{line} (invalid UTF-8 at byte 0 of the line)" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de.txt", "fr.txt", "nl.txt"]
    assert main([*args, "--max-bad-records", "150"]) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["total"]["dropped"]["bad_record"], report["total"]["kept"]) == (150, 3)
    assert [bad["line"] for bad in report["bad_records"]] == [*range(2, 52)] * 2


class OneLine(io.RawIOBase):
    """A line of `left` bytes, made as it is read, and a short one behind it."""

    left, end = 200_000_000, io.BytesIO(b"\nend\n")

    def read(self, size=-1):
        size = min(size, self.left)
        self.left -= size
        return b"x" * size if size else self.end.read()


def test_a_line_of_200_megabytes_is_not_held_in_memory():
    tracemalloc.start()
    try:
        (_, error), (number, end) = textio.lines_and_errors(OneLine(), "de.txt")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(error, InputError)
    assert str(error).startswith("de.txt:1: the line has more than 10,000,000 bytes")
    assert (number, end) == (2, "end") and peak < 5 * textio.MAX_LINE_BYTES
