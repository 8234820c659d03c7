"""Spans of three sentences that stand in several places: one of them keeps the span."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import filter_monolingual
from beam_pipelines.filtering.duplicate_spans import find_repeated, find_spans, remove_spans
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Sentence
from labse_tf.files.corpus_files import find_corpus_files


def chunk(*passages):
    return [[Sentence(text, "en") for text in passage] for passage in passages]


def left_of(*chunks):
    """Returns the rest of chunks that are compared with each other."""
    spans = [find_spans(one) for one in chunks]
    mask = find_repeated(np.concatenate(spans))
    parts = np.split(mask, np.cumsum([len(part) for part in spans])[:-1])
    return [
        [[sentence.text for sentence in passage] for passage in remove_spans(one, [data])[0]]
        for one, part, found in zip(chunks, spans, parts, strict=True)
        for data in [part[found].tobytes()]
    ]


def test_one_of_two_passages_keeps_the_span():
    first = chunk(["a1", "b2", "c3", "d4"])
    second = chunk(["x", "a1", "b2", "c3", "y"])
    results = left_of(first, second)
    assert results in (
        [[["a1", "b2", "c3", "d4"]], [["x", "y"]]],
        [[["d4"]], [["x", "a1", "b2", "c3", "y"]]],
    )
    # Whichever keeps it, the order of the input has no say.
    assert left_of(second, first) == results[::-1]


@pytest.mark.parametrize(
    ("passage", "left"),
    [
        # The first place of a passage keeps it.
        (["a", "b", "c", "x", "a", "b", "c"], ["a", "b", "c", "x"]),
        # Two sentences in common are no span.
        (["a", "b", "x", "a", "b"], ["a", "b", "x", "a", "b"]),
        # Case, spaces and punctuation do not count; accents do.
        (["A a.", "Б", "ع", "x", "aA", "б!", "« ع »"], ["A a.", "Б", "ع", "x"]),
        (["a", "é", "c", "x", "a", "e", "c"], ["a", "é", "c", "x", "a", "e", "c"]),
        (["a", "b"], ["a", "b"]),
        ([], []),
    ],
)
def test_within_a_passage(passage, left):
    assert left_of(chunk(passage)) == [[left]]


def test_equal_passages_stay_as_exact_duplicates_are_found_elsewhere():
    assert left_of(chunk(["a", "b", "c"]), chunk(["a", "b", "c"])) == [[["a", "b", "c"]]] * 2


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=8), min_size=1, max_size=6))
def test_no_sentence_is_lost_and_none_comes_up(passages):
    original = {text for passage in passages for text in passage}
    [[*left]] = [left_of(chunk(*passages))[0]]
    assert {text for passage in left for text in passage} == original
    assert all(len(after) <= len(before) for after, before in zip(left, passages, strict=True))


WORDS = ("north", "south", "east", "west", "old", "new")
COMMON = [f"The river flows through the {word} of the land." for word in WORDS[:3]]


def write_dumps(folder):
    """Three articles in three files, a span of which all have; the third has it twice."""
    folder.mkdir()
    own = [[f"Number {n} says something else about {word}." for word in WORDS] for n in range(3)]
    texts = [COMMON + own[0], own[1] + COMMON, COMMON + own[2] + COMMON]
    for number, sentences in enumerate(texts):
        (folder / f"enwiki-{number}.xml").write_text(
            "<mediawiki><page><title>T</title><ns>0</ns><revision><text>"
            f"{' '.join(sentences)}</text></revision></page></mediawiki>"
        )
    return sorted(COMMON + list(itertools.chain(*own)))


def test_across_files(tmp_path):
    expected = write_dumps(tmp_path / "in")
    out = tmp_path / "out"
    report = filter_monolingual.run([str(tmp_path / "in")], str(out))
    row = report["languages"]["en"]
    assert (row["read"], row["kept"], row["dropped"]["duplicate_span"]) == (30, 21, 9)
    assert not (out / "temporary").exists()
    files = find_corpus_files([str(out)])
    assert sorted(record.text for file in files for record in read_file(file)) == expected
    examples = (out / "examples.md").read_text(encoding="utf-8")
    assert examples.count("| en | The river flows") == 3
