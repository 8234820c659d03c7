"""Coverage as a table and as TSV, every cell by hand."""

from __future__ import annotations

import csv
import io

from labse_tf.coverage import format_table, format_tsv
from vocab.coverage import Coverage

COVERAGE = {
    "en": Coverage(sentences=30, words=90, tokens=100, characters=400),
    "th": Coverage(
        sentences=10, words=20, unknown_words=5, too_long_words=4, tokens=50, characters=200,
        unknown_characters=110, truncated_sentences=1,
    ),
    "or": Coverage(
        sentences=2, words=4, unknown_words=4, tokens=4, characters=20, unknown_characters=20
    ),
    "de": Coverage(sentences=4, words=9, tokens=10, characters=30, truncated_sentences=1),
}  # fmt: skip


def test_table_by_hand():
    lines = format_table(COVERAGE).splitlines()
    assert {len(line) for line in lines} == {100}
    header, _, *rows, _, total, mean = lines
    assert header.split()[:5] == ["code", "language", "sentences", "lost", "%"]
    assert [row.split() for row in rows] == [
        ["or", "Odia", "2", "100.00", "100.00", "-", "2.00", "0.00", "0.00"],
        # (200 - 110) / (50 - 5) characters a token.
        ["th", "Thai", "10", "55.00", "10.00", "2.00", "5.00", "10.00", "20.00"],
        ["de", "German", "4", "0.00", "0.00", "3.00", "2.50", "25.00", "0.00"],
        ["en", "English", "30", "0.00", "0.00", "4.00", "3.33", "0.00", "0.00"],
    ]
    # 130 of 650 characters, 9 of 164 tokens, 520 characters in 155 tokens, 2 of 46, 4 of 123.
    assert total.split() == ["all", "text", "46", "20.00", "5.49", "3.35", "3.57", "4.35", "3.25"]
    # Odia has no characters a token: the mean there is that of three.
    assert mean.split() == ["mean", "of", "4", "38.75", "27.50", "3.00", "3.21", "8.75", "5.00"]


def test_tsv_by_hand():
    rows = list(csv.DictReader(io.StringIO(format_tsv(COVERAGE)), delimiter="\t"))
    assert [row["language"] for row in rows] == ["or", "th", "de", "en"]
    assert rows[1] == {
        "language": "th", "name": "Thai", "script": "Thai",
        "sentences": "10", "words": "20", "unknown_words": "5", "too_long_words": "4",
        "tokens": "50", "characters": "200", "unknown_characters": "110",
        "truncated_sentences": "1",
        "lost_rate": "0.55", "unknown_rate": "0.1", "characters_per_token": "2",
        "tokens_per_sentence": "5", "truncated_rate": "0.1", "too_long_rate": "0.2",
    }  # fmt: skip
    assert rows[0]["characters_per_token"] == ""
    assert rows[3]["tokens_per_sentence"] == "3.33333"
