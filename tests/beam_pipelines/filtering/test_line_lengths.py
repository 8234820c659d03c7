"""Lines that are too short or too long are dropped whole, before they are split into sentences."""

import pytest

from beam_pipelines import filter_monolingual
from beam_pipelines.reading.readers import read_file
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import SHARD, find_corpus_files


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


@pytest.fixture
def text(tmp_path):
    assert [len(one) for one in LINES] == [5000, 6000, 5001, 30, 9, 10]
    path = tmp_path / "en.txt"
    path.write_text("".join(f"{one}\n" for one in LINES), "utf-8")
    return str(path)


def sentences_of(out):
    files = [file for file in find_corpus_files([str(out)]) if file.format == SHARD]
    return {record.text for file in files for record in read_file(file)}


def assert_by_hand(report, expected, kept):
    row = report["languages"]["en"]
    dropped = {reason: number for reason, number in row["dropped"].items() if number}
    assert (row["kept"], dropped) == (kept, expected)
    assert row["read"] == kept + sum(expected.values())


def test_lines_that_are_split(tmp_path, text):
    out = tmp_path / "out"
    report = filter_monolingual.run([text], str(out), split_sentences=True, scores=True)
    assert_by_hand(report, READ, KEPT)
    thresholds = report["thresholds"]
    limits = {name: thresholds[name] for name in ("short_line", "long_line", "short_sentence")}
    assert limits == {"short_line": 10, "long_line": 5000, "short_sentence": 0}
    found = sentences_of(out)
    assert {"Yes.", "It rains in the old town.", "Oh?", "Is it."} < found
    # Not a piece of a line that is too long.
    assert not found.intersection(LONG.replace(". ", ".\n").split("\n"))
    # What scored is what scores are read again for: the same shards.
    again = filter_monolingual.run([f"{out}/scores"], str(tmp_path / "again"), from_scores=True)
    assert again["total"]["kept"] == KEPT
    assert sentences_of(tmp_path / "again") == found
    moved = filter_monolingual.run(
        [f"{out}/scores"], str(tmp_path / "moved"), from_scores=True, min_sentence_characters=5
    )
    assert_by_hand(moved, {"short_sentence": 2}, KEPT - 2)
    with pytest.raises(InputError, match="limit lines, but these scores are of sentences"):
        filter_monolingual.run(
            [f"{out}/scores"], str(tmp_path / "none"), from_scores=True, min_characters=5
        )


def test_limits_of_lines_and_of_sentences(tmp_path, text):
    report = filter_monolingual.run(
        [text],
        str(tmp_path / "out"),
        split_sentences=True,
        min_characters=9,
        max_characters=5001,
        min_sentence_characters=5,
    )
    # "So?" and "Is it" of 5 come in; "Yes.", "So?" and "Oh?" are too short as sentences.
    assert_by_hand(report, {"long_line": 60, "short_sentence": 3}, KEPT + 50 + 2 - 3)


def test_lines_of_pages(tmp_path):
    """C4's filters first: what they drop is theirs."""
    path = tmp_path / "enwiki-x.xml"
    text = "\n\n".join([*LINES[:4], "Home"])
    path.write_text(
        f"<mediawiki><page><title>T</title><ns>0</ns><revision><text>{text}</text></revision>"
        "</page></mediawiki>"
    )
    report = filter_monolingual.run([str(path)], str(tmp_path / "out"), min_words=1)
    assert_by_hand(report, {"long_line": 110, "no_terminal_punctuation": 1}, 52)


def test_lines_that_stay_whole(tmp_path, text):
    """A line is a record: the reasons are those of records."""
    report = filter_monolingual.run([text], str(tmp_path / "out"))
    assert_by_hand(report, {"too_long": 2, "too_short": 1}, 3)
    with pytest.raises(InputError, match="limits sentences, but these records are lines"):
        filter_monolingual.run([text], str(tmp_path / "none"), min_sentence_characters=5)
