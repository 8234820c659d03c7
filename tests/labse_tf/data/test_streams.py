"""Streams that begin where a run is in its corpora."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines

from labse_tf.data import streams, texts
from labse_tf.data.token_cache import TokenCache, draw_pairs
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


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, (0, 0, 7)), (999, (0, 999, 7)), (1000, (1000, 0, 15_485_870)),
     (2345, (2000, 345, 30_971_733))],
)  # fmt: skip
def test_the_position_of_a_step(step, expected):
    place = streams.position(step, 7)
    assert place[:3] == expected and place.seed == expected[2]
    third = streams.position(step, 7, streams.Part(2, 3))
    assert third.shared_seed == place.seed and third.seed == place.seed + 64_905_686


@pytest.mark.parametrize("drawn", [0, 1, 9, 10, 13, 29, 30, 44, 300_007])
def test_a_stream_goes_on_where_it_was_and_each_pass_has_all_records(tmp_path, in_order, drawn):
    files = write_parts(tmp_path, [10, 3, 17])
    stream = streams.language_streams(files, seed=1, drawn={"th": drawn})["th"]
    expected = [(drawn + number) % 30 for number in range(75)]
    assert read(stream, 75) == expected


def test_files_keep_their_numbers(tmp_path, in_order):
    files = write_parts(tmp_path, [4, 6])
    (stream,) = streams.language_streams(files, seed=1, drawn={"th": 7}, number_files=True).values()
    numbers = [int(number) for _, number in stream.take(10)]
    assert numbers == [1, 1, 1, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("drawn", [2, 3, 30, 58])
def test_files_whose_records_differ_in_length_are_read_whole(tmp_path, in_order, drawn):
    """Short lines, then long ones: the place is wrong, but every record comes."""
    for name, lines in (("a", [f"{n}" for n in range(50)]), ("b", [f"{n:0300}" for n in range(9)])):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "th.txt", lines)
    files = find_plain_files([str(tmp_path)], kind=MONOLINGUAL)
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


def test_a_language_whose_share_is_small_is_where_its_share_says(tmp_path, in_order):
    weights = {"de": 0.75, "th": 0.25}
    assert streams.drawn_of(weights, 40) == {"de": 30, "th": 10}


def test_tokens_are_measured_by_language(tmp_path, tokenizer):
    write_lines(tmp_path / "de.tsv", ["cat\tKatze und Haus."] * 200)
    write_lines(tmp_path / "th.tsv", ["cat and house.\tแมวกับบ้าน"] * 3)
    found = streams.measure_tokens(find_plain_files([str(tmp_path)], kind=BITEXT), tokenizer)
    assert {language: tokens.shape for language, tokens in found.items()} == {
        "de": (64, 2), "th": (3, 2),
    }  # fmt: skip
    expected = [len(tokenizer(tf.constant([text]))[0]) for text in ("cat", "Katze und Haus.")]
    np.testing.assert_array_equal(found["de"][0], expected)


def test_pairs_in_memory_go_on_with_their_pass():
    """Two windows of one language, or the second alone: the same pairs."""
    cache = TokenCache([], None, None, {"de": 10})
    whole = np.concatenate(list(draw_pairs(cache, {"de": 1.0}, seed=3, draws=14).take(3)))
    later = draw_pairs(cache, {"de": 1.0}, seed=3, draws=14, before=14, draw_seed=99)
    np.testing.assert_array_equal(np.concatenate(list(later.take(2))), whole[14:])


@pytest.mark.parametrize("sizes", [[4, 4, 4], [9, 2, 1, 6, 1, 3], [7], [5, 6]])
@pytest.mark.parametrize("drawn", [0, 2])
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


def drawn_pairs(cache, weights, windows, **kwargs):
    return np.concatenate(list(draw_pairs(cache, weights, **kwargs).take(windows)))


def test_pairs_in_memory_are_drawn_by_weight_and_each_once_a_pass():
    sizes = {"de": 10, "fr": 7, "ja": 1, "th": 4}
    cache = TokenCache([], None, None, sizes)
    weights = {"de": 0.5, "fr": 0.0, "ja": 0.1, "th": 0.4}
    drawn = drawn_pairs(cache, weights, 50, seed=3, draws=100)
    assert not ((drawn >= 10) & (drawn < 17)).any()
    for start, language in ((0, "de"), (17, "ja"), (18, "th")):
        size, share = sizes[language], weights[language]
        own = drawn[(drawn >= start) & (drawn < start + size)] - start
        assert abs(len(own) - 5000 * share) < 5 * np.sqrt(5000 * share * (1 - share))
        passes = own[: len(own) // size * size].reshape(-1, size)
        np.testing.assert_array_equal(np.sort(passes), np.tile(np.arange(size), (len(passes), 1)))
        if size > 1:
            assert len(np.unique(passes, axis=0)) > 5  # Each pass has an order of its own.
    np.testing.assert_array_equal(drawn, drawn_pairs(cache, weights, 50, seed=3, draws=100))
    assert (drawn != drawn_pairs(cache, weights, 50, seed=4, draws=100)).any()
