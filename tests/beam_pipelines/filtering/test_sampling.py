"""Samples in constant memory, and the cap on the records of a language."""

import itertools
import math

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import filter_bitext, filter_monolingual
from beam_pipelines.filtering import cap, shards
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Sentence, encode_record
from beam_pipelines.reporting import ExampleSample, draw_examples
from beam_pipelines.runtime.shuffle import KeepSmallest, random_number_of
from labse_tf.files.corpus_files import find_corpus_files


@given(
    batches=st.lists(st.lists(st.integers(0, 50)), max_size=8),
    size=st.integers(1, 20),
    split=st.integers(0, 8),
    order=st.randoms(use_true_random=False),
)
def test_the_kept_are_the_smallest_however_they_come(batches, size, split, order):
    expected = sorted(set(itertools.chain(*batches)))[:size]
    order.shuffle(batches)
    combine = KeepSmallest(size)
    accumulators = []
    for part in (batches[:split], batches[split:]):
        kept = combine.create_accumulator()
        for batch in part:
            kept = combine.add_input(kept, [(key, str(key)) for key in batch])
        accumulators.append(kept)
    found = combine.extract_output(combine.merge_accumulators(accumulators))
    assert found == [(key, str(key)) for key in expected]


def test_a_sample_one_by_one_is_that_of_all_at_once():
    sentences = [Sentence(f"Satz {number % 1500}", "de") for number in range(4000)]
    sample = ExampleSample(5, seed=3)
    for sentence in sentences:
        sample.add(encode_record(sentence))
    reason, drawn = sample.describe("duplicate", Sentence)
    numbered = {random_number_of(encode_record(s), 3): ("de", s.text) for s in sentences}
    assert (reason, drawn) == ("duplicate", sorted(numbered.items())[:5])


def test_examples_are_different_records_cut_to_a_line_and_seeds_draw_others():
    records = [Sentence("", "de")] * 50 + [Sentence("x" * 1000, "de")]
    reason, drawn = draw_examples("too_short", records, 10, 0)
    assert reason == "too_short"
    assert sorted(fields for _, fields in drawn) == [("de", ""), ("de", "x" * 300 + "…")]
    records = [Sentence(str(number), "de") for number in range(100)]
    one, two = (draw_examples("too_short", records, 10, seed)[1] for seed in (0, 1))
    assert {fields for _, fields in one} != {fields for _, fields in two}


def test_cut():
    """Languages with more than two numbers have a cutoff, the second of them."""
    parts = [
        ("de", [5, 1]),
        ("de", [9, 3]),
        ("fr", [7, 8]),
        ("th", [2**64 - 1]),
        ("th", [0, 2**63]),
    ]
    with TestPipeline() as pipeline:
        elements = [(language, np.array(numbers, np.uint64)) for language, numbers in parts]
        cuts = pipeline | beam.Create(elements) | cap.FindCuts(2)
        assert_that(cuts, equal_to([("de", 3), ("th", 2**63)]))


_NUMBERS = st.sets(
    # Full bins and all-but-empty ones.
    st.integers(0, 2**64 - 1) | st.integers(2**60, 2**60 + 40),
    min_size=1,
    max_size=60,
)


@given(numbers=_NUMBERS, maximum=st.integers(1, 70), size=st.integers(1, 5))
def test_exactly_the_smallest_numbers_stay(numbers, maximum, size):
    parts = [sorted(numbers)[first::size] for first in range(size)]
    elements = [("de", np.array(part, np.uint64)) for part in parts if part]
    histograms = [cap._histogram(*element)[1] for element in elements]
    total = cap._add_up([cap._add_up(histograms[:2]), *histograms[2:]])
    bins = dict(cap._find_bin(("de", total), maximum))
    if len(numbers) <= maximum:
        assert bins == {}
        return
    selected = [chosen for element in elements for _, chosen in cap._select(element, bins)]
    _, cut = cap._cut("de", selected)
    assert [number for number in sorted(numbers) if number <= cut] == sorted(numbers)[:maximum]


@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=20),
    st.integers(0, 2**64 - 1),
)
def test_the_best_scores_have_the_smallest_numbers(scores, number):
    """Equal scores are in the order of their random numbers; what has no score comes last."""
    random = np.array([number, *range(len(scores) - 1)], np.uint64) << np.uint64(32)
    found = cap.best_first(scores, random)
    assert found.dtype == np.uint64
    # -0.0 stands behind 0.0, though they are equal.
    expected = sorted(
        range(len(scores)),
        key=lambda place: (-scores[place], math.copysign(1, scores[place]) < 0, random[place]),
    )
    order = sorted(range(len(scores)), key=lambda place: (int(found[place]), random[place]))
    assert order == expected
    found = cap.best_first([math.nan, -1e30, 0.5, -math.inf], np.zeros(4, np.uint64))
    assert found[0] == found[3] == max(found) and found[2] < found[1] < found[0]


def read_texts(out):
    files = find_corpus_files([str(out)])
    return [record for file in files for record in read_file(file)]


@pytest.mark.parametrize("maximum", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_cap(tmp_path, monkeypatch, maximum):
    """500 distinct lines, each of them twice, in 3 shards; French stays below the cap."""
    monkeypatch.setattr(shards, "text_bytes", lambda file: 2_500_000)
    lines = [f"Das ist der Satz mit der Nummer {number}.\n" for number in range(500)]
    (tmp_path / "de.txt").write_text("".join(lines * 2) + "kurz\n" * 100)
    (tmp_path / "fr.txt").write_text("Une seule phrase.\n")
    options = {"max_per_language": maximum, "megabytes_per_shard": 1}
    report = filter_monolingual.run([str(tmp_path)], str(tmp_path / "out"), **options)
    row = report["languages"]["de"]
    dropped = {name: row["dropped"][name] for name in ("too_short", "duplicate", "over_cap")}
    assert dropped == {"too_short": 100, "duplicate": 500, "over_cap": 500 - maximum}
    assert report["languages"]["fr"]["kept"] == 1
    german = [record.text + "\n" for record in read_texts(tmp_path / "out") if record[-1] == "de"]
    assert len(german) == len(set(german)) == row["kept"] == maximum
    assert set(german) <= set(lines)
    assert ("## over_cap" in (tmp_path / "out/examples.md").read_text()) is (maximum < 500)


@pytest.mark.slow
def test_smaller_caps_keep_a_part_of_what_larger_ones_keep_and_seeds_differ(tmp_path):
    lines = [f"Sentence number {number}.\tSatz Nummer {number}.\n" for number in range(500)]
    (tmp_path / "de.tsv").write_text("".join(lines))
    found = []
    for maximum, seed in ((100, 0), (200, 0), (200, 1)):
        out = tmp_path / f"{maximum}-{seed}"
        filter_bitext.run([f"{tmp_path}/de.tsv"], str(out), max_per_language=maximum, seed=seed)
        found.append(set(read_texts(out)))
    small, large, other = found
    assert small < large
    assert 40 < len(large & other) < 120  # 80 by chance
