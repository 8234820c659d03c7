"""Lines that are too short or too long are dropped whole, before they are split into sentences."""

import pytest
from text_files import read_corpus, write_lines

from beam_pipelines import filter_monolingual
from labse_tf.errors import InputError


def sentence(number, length):
    """A sentence of so many characters, none like another."""
    start = f"Number {number} is "
    return start + "a" * (length - len(start) - 1) + "."


def line(first, length):
    """A line of so many characters, in sentences of 99 and one of what is left."""
    count = length // 100
    sentences = [sentence(first + place, 99) for place in range(count - 1)]
    return " ".join([*sentences, sentence(first + count, length - 100 * (count - 1))])


# Lines of 5,000 and 6,000 characters have 50 and 60 sentences, a longer last one makes it 5,001.
JUST_SHORT, LONG, JUST_LONG = line(0, 5000), line(100, 6000), line(200, 5001)
LINES = [JUST_SHORT, LONG, JUST_LONG, "Yes. It rains in the old town.", "So? Is it", "Oh? Is it."]
READ = {"long_line": 60 + 50, "short_line": 2}
KEPT = 50 + 2 + 2


def assert_by_hand(report, expected, kept):
    row = report["languages"]["en"]
    dropped = {reason: number for reason, number in row["dropped"].items() if number}
    assert (row["kept"], dropped) == (kept, expected)
    assert row["read"] == kept + sum(expected.values())


def test_lines_that_are_split_and_lines_that_stay_whole(tmp_path):
    assert [len(one) for one in LINES] == [5000, 6000, 5001, 30, 9, 10]
    path = write_lines(tmp_path / "en.txt", LINES)

    def run(name, inputs=path, **options):
        return filter_monolingual.run([str(inputs)], str(tmp_path / name), **options)

    report = run("out", split_sentences=True, scores=True)
    assert_by_hand(report, READ, KEPT)
    thresholds = report["thresholds"]
    assert (thresholds["short_line"], thresholds["long_line"]) == (10, 5000)
    found = {record.text for record in read_corpus(tmp_path / "out")}
    assert {"Yes.", "It rains in the old town.", "Oh?", "Is it."} < found
    # No piece of a line that is too long is kept.
    assert not found.intersection(LONG.replace(". ", ".\n").split("\n"))
    scores = {"inputs": tmp_path / "out/scores", "from_scores": True}
    assert_by_hand(run("moved", **scores), {}, KEPT)
    with pytest.raises(InputError, match="limit lines, but these scores are of sentences"):
        run("none", min_characters=5, **scores)
    # A line is a record: the reasons are those of records.
    assert_by_hand(run("whole"), {"too_long": 2, "too_short": 1}, 3)
