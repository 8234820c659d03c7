"""Streams that begin where a run is in its corpora."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines

from labse_tf.data import streams, texts
from labse_tf.files.corpus_files import BITEXT, MONOLINGUAL, find_plain_files


def write_parts(folder, sizes):
    """Files of lines of 7 bytes, numbered through: part 0 has the first ones."""
    total = 0
    for number, size in enumerate(sizes):
        lines = [f"{line:06}" for line in range(total, total + size)]
        (folder / f"part{number}").mkdir()
        write_lines(folder / f"part{number}" / "th.txt", lines)
        total += size
    return find_plain_files([str(folder)], kind=MONOLINGUAL)


def read(dataset, count):
    (records,) = dataset.take(count).batch(count)
    return [int(text) for text in texts.parse(MONOLINGUAL, records)[0].numpy()]


@pytest.fixture
def in_order(monkeypatch):
    """A shuffle buffer of one record keeps the order."""
    monkeypatch.setattr(streams, "_SHUFFLE_BUFFER", 1)


def test_the_position_of_a_step():
    for step, expected in (
        (999, (0, 999, 7)), (1000, (1000, 0, 15_485_870)), (2345, (2000, 345, 30_971_733)),
    ):  # fmt: skip
        place = streams.position(step, 7)
        assert place[:3] == expected and place.seed == expected[2]
        third = streams.position(step, 7, streams.Part(2, 3))
        assert third.shared_seed == place.seed and third.seed == place.seed + 64_905_686
    assert streams.drawn_of({"de": 0.75, "th": 0.25}, 40) == {"de": 30, "th": 10}


def test_a_stream_goes_on_where_it_was_and_each_pass_has_all_records(tmp_path, in_order):
    files = write_parts(tmp_path, [10, 3, 17])
    for drawn in (0, 9, 10, 300_014):
        stream = streams.language_streams(files, seed=1, drawn={"th": drawn})["th"]
        assert read(stream, 75) == [(drawn + number) % 30 for number in range(75)]


def test_files_whose_records_differ_in_length_are_read_whole(tmp_path, in_order):
    """Short lines, then long ones: the place is wrong, but every record comes."""
    for name, lines in (("a", [f"{n}" for n in range(50)]), ("b", [f"{n:0300}" for n in range(9)])):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "th.txt", lines)
    files = find_plain_files([str(tmp_path)], kind=MONOLINGUAL)
    for drawn in (3, 58):
        stream = streams.language_streams(files, seed=1, drawn={"th": drawn})["th"]
        assert Counter(read(stream, 59)) == Counter([*range(50), *range(9)])


def test_compressed_shards_and_pairs_with_negatives_begin_later_too(tmp_path, in_order):
    path = str(tmp_path / "de.tfrecord.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for number in range(8):
            writer.write(f"{number}".encode())
    (file,) = find_plain_files([str(tmp_path)], kind=BITEXT)
    assert [int(one) for one in texts.records(file, skip=5)] == [5, 6, 7]
    write_lines(tmp_path / "th.tsv", [f"a{n}\tb{n}\tc{n}" for n in range(8)])
    (file,) = find_plain_files([str(tmp_path / "th.tsv")], kind=BITEXT)
    (batch,) = texts.records(file, negatives=1, skip=6).batch(9)
    columns = texts.parse(BITEXT, batch, negatives=1)
    assert columns[2].numpy().tolist() == [[b"c6"], [b"c7"]]


def test_tokens_are_measured_by_language(tmp_path, tokenizer):
    write_lines(tmp_path / "de.tsv", ["cat\tKatze und Haus."] * 200)
    write_lines(tmp_path / "th.tsv", ["cat and house.\tแมวกับบ้าน"] * 3)
    found = streams.measure_tokens(find_plain_files([str(tmp_path)], kind=BITEXT), tokenizer)
    assert {language: tokens.shape for language, tokens in found.items()} == {
        "de": (64, 2), "th": (3, 2),
    }  # fmt: skip
    expected = [len(tokenizer(tf.constant([text]))[0]) for text in ("cat", "Katze und Haus.")]
    np.testing.assert_array_equal(found["de"][0], expected)


@pytest.mark.parametrize(("sizes", "drawn"), [([9, 2, 1, 6, 1, 3], 2), ([5, 6], 2), ([5, 6], 0)])
def test_parts_share_the_records(tmp_path, in_order, sizes, drawn):
    """Whole files, or of a language with fewer files than parts each third record."""
    files = write_parts(tmp_path, sizes)
    found = []
    for index in range(3):
        part = streams.Part(index, 3)
        stream = streams.language_streams(files, seed=1, drawn={"th": drawn}, part=part)["th"]
        share = len(range(index, sum(sizes), 3))
        if len(sizes) >= 3:
            share = sum(sizes[index::3])
        rows = read(stream, 2 * share)
        assert sorted(rows[:share]) == sorted(rows[share:])
        found += rows[:share]
    assert sorted(found) == list(range(sum(sizes)))


def test_the_mix_follows_the_weights():
    names = ("de", "fr", "th")
    named = {name: tf.data.Dataset.from_tensors(name).repeat() for name in names}
    mixed = streams.mix(named, {"de": 0.7, "fr": 0.2, "th": 0.1}, seed=3)
    counts = Counter(text.decode() for text in mixed.take(2000).as_numpy_iterator())
    for name, share in (("de", 0.7), ("fr", 0.2), ("th", 0.1)):
        assert abs(counts[name] - 2000 * share) < 5 * np.sqrt(2000 * share * (1 - share))
