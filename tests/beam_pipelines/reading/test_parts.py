"""Parts of files, put together, have the records and the errors of the whole file."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from text_files import content_of, write_lines

from beam_pipelines import filter_bitext
from beam_pipelines.reading import find
from beam_pipelines.reading.find import FilePart, divide
from beam_pipelines.reading.readers import records_and_errors, records_of_part
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import NEIGHBOURS, describe

LINES = {
    "de.txt": ["", "Regen\r", "雨が降る", "ฝนตก", "x" * 40, "a\0b", "\udc80"],
    "de.tsv": ["A\tEin", "B\t雨", "no tab", "\t", "", "0.5\tA\tEin"],
}


def described(records):
    return [str(one) if isinstance(one, InputError) else one for one in records]


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.booleans(), st.integers(1, 60))
def test_lines(tmp_path, name, data, ends, size):
    lines = data.draw(st.lists(st.sampled_from(LINES[name]), min_size=1))
    content = "\n".join(lines) + ("\n" if ends else "x")
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    file = describe(str(tmp_path / name))
    whole = described(records_and_errors(file))
    parts = [one for part in divide([file], size) for one in records_of_part(part)]
    # Columns that are not recognised are said once for each part.
    assert list(dict.fromkeys(described(parts))) == list(dict.fromkeys(whole))
    assert len(parts) == len(whole) or "columns" in whole[0]


def test_what_has_no_parts(tmp_path):
    for name in ("de.txt.gz", "de.txt.zst", "x.tmx", "de.parquet", "de.tfrecord", "de.txt"):
        (tmp_path / name).write_bytes(b"x\n" * 100)
        file = describe(str(tmp_path / name))
        assert (divide([file], 10) == [FilePart(file)]) == (name != "de.txt")
    assert len(divide([file], 10)) == 20
    assert len(divide([file._replace(kind=NEIGHBOURS)], 10)) == 1


def test_a_job_gives_the_same_shards(tmp_path, monkeypatch):
    lines = [f"The house number {n} is old.\tDas Haus Nummer {n} ist alt." for n in range(200)]
    write_lines(tmp_path / "de.tsv", lines)
    whole = filter_bitext.run([str(tmp_path / "de.tsv")], str(tmp_path / "whole"))
    monkeypatch.setattr(find, "PART_BYTES", 3_000)
    parts = filter_bitext.run([str(tmp_path / "de.tsv")], str(tmp_path / "parts"))
    assert parts == whole and whole["total"]["kept"] > 150
    assert content_of(tmp_path / "parts") == content_of(tmp_path / "whole")
