"""Parts of files, put together, have the records and the errors of the whole file."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beam_pipelines import filter_bitext
from beam_pipelines.reading import file_parts
from beam_pipelines.reading.file_parts import FilePart, divide, open_part
from beam_pipelines.reading.readers import records_and_errors, records_of_part
from beam_pipelines.records import records as tfrecords
from beam_pipelines.records.records import Pair, Sentence, encode_record
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import NEIGHBOURS, describe

LINES = st.lists(st.sampled_from(["", "Regen\r", "雨が降る", "ฝนตก", "x" * 40, "a\0b", "\udc80"]))
PAIR_LINES = st.lists(st.sampled_from(["A\tEin", "B\t雨", "no tab", "\t", ""]), min_size=1)
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def described(records):
    """Errors by what they say; an unreadable file says it once, whatever the number of parts."""
    return [str(one) if isinstance(one, InputError) else one for one in records]


def read_in_parts(file, size):
    return described(one for part in divide([file], size) for one in records_of_part(part))


@quick
@given(LINES.filter(bool), st.booleans(), st.integers(1, 60))
def test_text(tmp_path, lines, ends, size):
    path = tmp_path / "de.txt"
    content = "\n".join(lines) + ("\n" if ends else "x")
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    file = describe(str(path))
    assert read_in_parts(file, size) == described(records_and_errors(file))


@quick
@given(
    st.lists(st.sampled_from(["A\tEin", "B\t雨", "no tab", "\t", ""]), min_size=1),
    st.integers(1, 30),
)
def test_pairs_and_the_lines_of_errors(tmp_path, lines, size):
    path = tmp_path / "de.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    file = describe(str(path))
    assert read_in_parts(file, size) == described(records_and_errors(file))


@quick
@given(st.lists(st.text(max_size=30), min_size=1, max_size=40), st.integers(1, 300))
def test_tfrecords(tmp_path, texts, size):
    path = tmp_path / "de.tfrecord"
    records = [Sentence(text.replace("\0", "").strip(), "de") for text in texts]
    with open(path, "wb") as stream:
        tfrecords.write_records(stream, list(map(encode_record, records)))
    assert read_in_parts(describe(str(path)), size) == records


def test_long_records_and_what_looks_like_a_record(tmp_path, monkeypatch):
    """Records longer than what is searched at once, one of them with a record's first bytes."""
    monkeypatch.setattr(file_parts, "_SEARCH_BYTES", 100)
    path = tmp_path / "de.tfrecord"
    with open(path, "wb") as stream:
        tfrecords.write_records(stream, [b"ab"])
    header = path.read_bytes()[: tfrecords.HEADER_BYTES]
    records = [header + "雨".encode() * 200 + bytes([number]) for number in range(9)]
    with open(path, "wb") as stream:
        tfrecords.write_records(stream, records)
    for size in (1, 97, 1000):
        found = []
        for part in divide([describe(str(path))], size):
            with open_part(part) as stream:
                found += tfrecords.read_records(stream) if stream else []
        assert found == records


def test_damage_behind_the_first_part_is_said(tmp_path):
    path = tmp_path / "de.tfrecord"
    records = [encode_record(Pair(f"house {number}", "Haus", "de")) for number in range(20)]
    with open(path, "wb") as stream:
        tfrecords.write_records(stream, records)
    path.write_bytes(path.read_bytes()[:-3])
    found = read_in_parts(describe(str(path)), 500)
    assert found[:-1] == [Pair(f"house {number}", "Haus", "de") for number in range(19)]
    assert "is cut off" in found[-1] and "counted from byte" in found[-1]


@pytest.mark.parametrize(
    "name", ["de.txt.gz", "de.txt.zst", "News.de-en.de", "x.tmx", "de.parquet"]
)
def test_what_has_no_parts(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"x" * 100)
    assert divide([describe(str(path))], 10) == [FilePart(describe(str(path)))]


def test_neighbours_have_no_parts(tmp_path):
    path = tmp_path / "de.txt"
    path.write_bytes(b"x\n" * 100)
    file = describe(str(path))
    assert len(divide([file], 10)) == 20
    assert len(divide([file._replace(kind=NEIGHBOURS)], 10)) == 1


def test_a_job_gives_the_same_shards(tmp_path, monkeypatch):
    lines = [f"The house number {n} is old.\tDas Haus Nummer {n} ist alt.\n" for n in range(500)]
    (tmp_path / "de.tsv").write_text("".join(lines), "utf-8")
    whole = filter_bitext.run([str(tmp_path / "de.tsv")], str(tmp_path / "whole"))
    monkeypatch.setattr(file_parts, "PART_BYTES", 3_000)
    parts = filter_bitext.run([str(tmp_path / "de.tsv")], str(tmp_path / "parts"))
    assert parts == whole and whole["total"]["kept"] > 400
    for path in (tmp_path / "whole").rglob("*.gz"):
        same = tmp_path / "parts" / path.relative_to(tmp_path / "whole")
        assert same.read_bytes() == path.read_bytes()
