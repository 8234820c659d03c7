"""Samples in constant memory, and the cap on the records of a language."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from text_files import read_corpus, write_lines

from beam_pipelines import filter_monolingual
from beam_pipelines.filtering import shards
from beam_pipelines.records import Sentence
from beam_pipelines.reporting import draw_examples
from beam_pipelines.runtime.shuffle import KeepSmallest


@given(st.lists(st.lists(st.integers(0, 50)), max_size=8), st.integers(1, 20), st.integers(0, 8))
def test_the_kept_are_the_smallest_however_they_come(batches, size, split):
    expected = sorted(set(itertools.chain(*batches)))[:size]
    combine = KeepSmallest(size)
    accumulators = []
    for part in (batches[split:], batches[:split]):
        kept = combine.create_accumulator()
        for batch in part:
            kept = combine.add_input(kept, [(key, str(key)) for key in batch])
        accumulators.append(kept)
    found = combine.extract_output(combine.merge_accumulators(accumulators))
    assert found == [(key, str(key)) for key in expected]


def test_examples_are_different_records_cut_to_a_line_and_seeds_draw_others():
    records = [Sentence("", "de")] * 50 + [Sentence("x" * 1000, "de")]
    fields = [fields for _, fields in draw_examples(records, 10, 0)]
    assert sorted(fields) == [("de", ""), ("de", "x" * 300 + "…")]
    records = [Sentence(str(number), "de") for number in range(100)]
    one, two = ({fields for _, fields in draw_examples(records, 10, seed)} for seed in (0, 1))
    assert len(one) == 10 and one != two


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
    histograms = [shards._histogram(*element)[1] for element in elements]
    total = shards._add_up([shards._add_up(histograms[:2]), *histograms[2:]])
    bins = dict(shards._find_bin(("de", total), maximum))
    if len(numbers) <= maximum:
        assert bins == {}
        return
    selected = [chosen for element in elements for _, chosen in shards._select(element, bins)]
    _, cut = shards._cut("de", selected)
    assert [number for number in sorted(numbers) if number <= cut] == sorted(numbers)[:maximum]


@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=20),
    st.integers(0, 2**64 - 1),
)
def test_the_best_scores_have_the_smallest_numbers(scores, number):
    """Equal scores are in the order of their random numbers; what has no score comes last."""
    random = np.array([number, *range(len(scores) - 1)], np.uint64) << np.uint64(32)
    found = shards.best_first(scores, random)
    assert found.dtype == np.uint64
    # -0.0 stands behind 0.0, though they are equal.
    expected = sorted(
        range(len(scores)),
        key=lambda place: (-scores[place], math.copysign(1, scores[place]) < 0, random[place]),
    )
    order = sorted(range(len(scores)), key=lambda place: (int(found[place]), random[place]))
    assert order == expected
    found = shards.best_first([math.nan, -1e30, 0.5, -math.inf], np.zeros(4, np.uint64))
    assert found[0] == found[3] == max(found) and found[2] < found[1] < found[0]


def test_cap(tmp_path, monkeypatch):
    """500 distinct lines, each of them twice, in 3 shards; French stays below the cap."""
    monkeypatch.setattr(shards, "text_bytes", lambda file: 2_500_000)
    lines = [f"Das ist der Satz mit der Nummer {number}." for number in range(500)]
    write_lines(tmp_path / "de.txt", [*lines * 2, *["kurz"] * 100])
    write_lines(tmp_path / "fr.txt", ["Une seule phrase."])
    kept, names = {}, {f"part-0000{number}-of-00003.tfrecord.gz" for number in range(3)}
    for maximum, seed in ((30, 0), (60, 0), (60, 1)):
        out, options = tmp_path / f"{maximum}-{seed}", {"max_per_language": maximum, "seed": seed}
        inputs = [str(tmp_path / "??.txt")]
        report = filter_monolingual.run(inputs, str(out), megabytes_per_shard=1, **options)
        row = report["languages"]["de"]
        dropped = {reason: number for reason, number in row["dropped"].items() if number}
        assert dropped == {"too_short": 100, "duplicate": 500, "over_cap": 500 - maximum}
        assert report["languages"]["fr"]["kept"] == 1
        assert {"## duplicate", "## over_cap"} < {*(out / "examples.md").read_text().split("\n")}
        assert {path.name for path in (out / "monolingual" / "de").iterdir()} == names
        texts = [text for text, language in read_corpus(out) if language == "de"]
        assert len(texts) == len(set(texts)) == row["kept"] == maximum
        kept[maximum, seed] = set(texts)
    # A smaller cap keeps a part of what a larger one keeps; another seed keeps others.
    assert kept[30, 0] < kept[60, 0] < set(lines)
    assert len(kept[60, 0] & kept[60, 1]) < 20  # 7 by chance
