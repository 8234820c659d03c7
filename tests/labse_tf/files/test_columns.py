"""Which columns of a TSV file hold the texts; byte order marks and old line ends."""

from __future__ import annotations

import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run

from beam_pipelines.reading.find import divide
from beam_pipelines.reading.readers import read_file, records_and_errors, records_of_part
from labse_tf.data import texts
from labse_tf.errors import InputError
from labse_tf.evaluation.tasks.retrieval import read_pools
from labse_tf.evaluation.texts import find_corpora, read_columns
from labse_tf.files.corpus_files import BITEXT, describe
from labse_tf.files.textio import count_lines, read_lines, read_pairs

PAIRS = [
    ("Good morning.", "Guten Morgen."),
    ("What time is it?", "Wie spät ist es?"),
    ("20", "zwanzig"),
    ("The water is cold.", "Das Wasser ist kalt."),
]
ENCODER = "hashed_encoders:make_hashed"
URLS = ("https://example.org/en/a?b=1", "http://example.org/de/a")
LAYOUTS = {
    "plain": lambda pair, at: pair,
    "mined": lambda pair, at: (f"{1.3 - at / 10:.6f}", *pair),
    "wikimatrix": lambda pair, at: (f"{1.25 - at / 10}", *pair, "x"),
    "scored twice": lambda pair, at: (f"-{at}.5e-1", "1,25", *pair),
    "paracrawl": lambda pair, at: (*URLS, *pair, "0.7", "hash"),
    "several urls": lambda pair, at: (" ".join(URLS), "www.example.org/x", *pair),
    "numbered": lambda pair, at: (str(at), *pair),
    "scores behind": lambda pair, at: (*pair, "0.9", "-1.5"),
}


def table(layout, pairs=PAIRS):
    return "".join("\t".join(LAYOUTS[layout](pair, at)) + "\n" for at, pair in enumerate(pairs))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_reader_knows_the_columns_before_the_texts(tmp_path, layout):
    path = tmp_path / "de.tsv"
    for lines in (1, 2, 40, 4):
        pairs = (PAIRS * 10)[:lines]
        path.write_text(table(layout, pairs), "utf-8")
        assert [row[1:] for row in read_pairs(path)] == pairs
        assert [tuple(row[:2]) for row in read_file(describe(str(path)))] == pairs
    (plain,) = texts.find_files([str(tmp_path)], BITEXT, [], key="train.bitext")
    assert [tuple(row) for chunk in texts.columns(plain) for row in chunk] == PAIRS
    assert read_pools(tmp_path) == {"de": PAIRS}
    corpus = find_corpora(tmp_path)["de"]
    assert list(zip(corpus.texts(0), corpus.texts(1), strict=True)) == PAIRS
    # In parts of a few bytes: the file's first lines tell it for all of them.
    parts = divide([describe(str(path))], 30)
    records = [record for part in parts for record in records_of_part(part)]
    assert [tuple(record[:2]) for record in records] == PAIRS
    # The order in the name counts behind scores.
    path = path.rename(tmp_path / "WikiMatrix.de-en.tsv")
    path.write_text(table(layout, [pair[::-1] for pair in PAIRS]), "utf-8")
    assert [tuple(row[:2]) for row in read_file(describe(str(path)))] == PAIRS


def test_score_reads_what_mine_writes(tmp_path, capsys):
    """And its own output, whose first column is a score likewise."""
    sides = [tmp_path / "en.txt", tmp_path / "de.txt"]
    for path, texts_of_side in zip(sides, zip(*PAIRS, strict=True), strict=True):
        path.write_text("\n".join(texts_of_side), "utf-8")
    mined, plain = tmp_path / "pairs.tsv", tmp_path / "plain.tsv"
    assert run(capsys, "mine", ENCODER, *sides, "--out", mined)[0] == 0
    rows = [line.split("\t") for line in mined.read_text("utf-8").splitlines()]
    plain.write_text("".join("\t".join(row[1:]) + "\n" for row in rows), "utf-8")
    scores = []
    for name in (plain, mined):
        out = tmp_path / f"{name.stem}.scored"
        assert run(capsys, "score", ENCODER, name, "--out", out)[0] == 0
        scores.append([line.split("\t")[0] for line in out.read_text("utf-8").splitlines()])
    assert scores[0] == scores[1] and len(scores[0]) == len(rows) > 0


def test_other_columns_are_refused_but_a_pair_of_numbers_is_a_pair(tmp_path):
    path = tmp_path / "de.tsv"
    for columns in (
        lambda pair, at: (pair[0], "0.5", pair[1]),
        lambda pair, at: (URLS[0], pair[0], URLS[1], pair[1]),
        lambda pair, at: ("0.5", pair[0], URLS[0]),
        lambda pair, at: ("0.5", pair[0]),
        lambda pair, at: (pair[0], str(at)),
    ):
        rows = (columns(pair, at) for at, pair in enumerate(PAIRS * 2))
        path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
        for read in (read_pairs, lambda path: read_file(describe(str(path)))):
            with pytest.raises(InputError) as caught:
                list(read(path))
            assert (caught.value.path, caught.value.line) == (str(path), 1)
    path.write_text("100\t100\n12.5\t12,5\n", "utf-8")
    assert [row[1:] for row in read_pairs(path)] == [("100", "100"), ("12.5", "12,5")]


SENTENCES = ["Guten Morgen.", "おはよう。", "صباح الخير", "สวัสดี"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_line_ends(tmp_path, end, mark):
    path = tmp_path / "de.txt"
    path.write_bytes((mark + end.join([*SENTENCES, ""])).encode())
    assert list(read_lines(path)) == list(enumerate(SENTENCES, 1))
    assert count_lines(path) == len(SENTENCES)
    assert [record.text for record in read_file(describe(str(path)))] == SENTENCES
    tsv, other = tmp_path / "de.tsv", tmp_path / "N.de-en.en"
    tsv.write_bytes((end.join(f"{mark}{one}\t{mark}{one}!" for one in SENTENCES) + end).encode())
    other.write_bytes((mark + "\n".join(SENTENCES)).encode())
    pairs = [(text, f"{text}!") for text in SENTENCES]
    assert [row[1:] for row in read_pairs(tsv)] == pairs
    assert [tuple(record[:2]) for record in read_file(describe(str(tsv)))] == pairs
    rows = read_columns(tsv, ("label", "text"))
    assert [tuple(row) for row in rows] == pairs
    (tmp_path / "N.de-en.de").write_bytes(path.read_bytes())
    for read in (read_file, lambda file: itertools.chain(*texts.columns(file))):
        rows = [tuple(row[:2]) for row in read(describe(str(other)))]
        assert rows == [(one, one) for one in SENTENCES]


def test_line_ends_of_old_macs_are_refused(tmp_path):
    path = tmp_path / "de.txt"
    for end in ("", "\n"):
        path.write_bytes(("\r".join(SENTENCES) + end).encode())
        for read in (read_lines, lambda path: read_file(describe(str(path)))):
            with pytest.raises(InputError, match="carriage returns") as caught:
                list(read(path))
            assert (caught.value.path, caught.value.line) == (str(path), 1)


def test_training_refuses_a_moses_pair_with_an_empty_line(tmp_path):
    for side, text in (("en", "a\nb\n"), ("de", "c\n \n")):
        (tmp_path / f"N.en-de.{side}").write_text(text, "utf-8")
    path = str(tmp_path / "N.en-de.de")
    with pytest.raises(InputError, match="the line is empty") as caught:
        list(texts.columns(describe(path)))
    assert (caught.value.path, caught.value.line) == (path, 2)


EACH = pytest.mark.parametrize("extension", ["parquet", "jsonl"])


def write_rows(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


BY_CODE = [{"en": source, "de": target} for source, target in PAIRS]
ROWS = {
    "ours": [{"src_raw": s, "tgt_raw": t, "language_code": "de"} for s, t in PAIRS],
    "both languages": [{"src_raw": s, "tgt_raw": t, "language_code": "en-de"} for s, t in PAIRS],
    "other order": [{"src_raw": t, "tgt_raw": s, "language_code": "de-en"} for s, t in PAIRS],
    "source and target": [{"source": s, "target": t, "lang": "deu"} for s, t in PAIRS],
    "by code": BY_CODE,
    "by code, with a number": [{"id": str(at), **row} for at, row in enumerate(BY_CODE)],
    "three letters": [{"eng": s, "deu": t} for s, t in PAIRS],
    "translation": [{"translation": row} for row in BY_CODE],
    "more": [{"id": at, "url": "x", "translation": row} for at, row in enumerate(BY_CODE)],
}


@EACH
def test_rows_of_others(tmp_path, extension):
    path = tmp_path / f"train-00000-of-00001.{extension}"
    for rows in ROWS.values():
        write_rows(path, rows)
        for kind in (BITEXT, None):
            file = describe(str(path))._replace(kind=kind)
            assert list(read_file(file)) == [(*pair, "de") for pair in PAIRS]
    # The name tells the languages.
    rows = [dict(zip(("src_raw", "tgt_raw"), pair, strict=True)) for pair in PAIRS]
    for name, swapped in (("de", False), ("en-de", False), ("de-en", True)):
        path = tmp_path / f"{name}.{extension}"
        write_rows(path, rows)
        expected = [(*(pair[::-1] if swapped else pair), "de") for pair in PAIRS]
        assert list(read_file(describe(str(path))._replace(kind=BITEXT))) == expected


@EACH
def test_rows_of_several_translations_of_english_alone_and_of_others(tmp_path, extension):
    path = tmp_path / f"all.{extension}"
    file = describe(str(path))._replace(kind=BITEXT)
    rows = [
        {"translation": {"en": "Water.", "de": "Wasser.", "ja": "水。"}},
        {"translation": {"en": "Fire.", "de": "Feuer.", "ja": None}},
        # Without English, all pairs of a row are lost, which is said.
        {"translation": {"en": None, "de": "Luft.", "ja": "空。"}},
    ]
    expected = [("Fire.", "Feuer.", "de"), ("Water.", "Wasser.", "de"), ("Water.", "水。", "ja")]
    write_rows(path, rows[:2])
    assert sorted(read_file(file)) == expected
    write_rows(path, rows)
    found = list(records_and_errors(file))
    assert sorted(one for one in found if not isinstance(one, InputError)) == expected
    assert [("'en'" in str(one)) for one in found if isinstance(one, InputError)] == [True, True]
    for code in ("en", "en-US", "eng_Latn"):
        write_rows(path, [{"src_raw": "a", "tgt_raw": "b", "language_code": code}])
        with pytest.raises(InputError) as caught:
            list(read_file(file))
        assert caught.value.path == str(path)
    write_rows(path, [{"src_raw": "eins", "tgt_raw": "un", "language_code": "de-fr"}])
    assert list(read_file(file)) == [("eins", "un", "de-fr")]


NO_RECORDS = ["{", "[1]", '"text"', "null", '{"text": 5}', '{"text": null}', "[" * 100_000]
NO_RECORDS += ['{"words": ""}', '{"text": "\\ud800"}', '{"text": "a\\u0000b"}', "NaN"]


@pytest.mark.parametrize("line", [*NO_RECORDS, '{"text": "a", "text": ["b"]}'])
def test_a_line_that_is_no_record(tmp_path, line):
    path = tmp_path / "de.jsonl"
    path.write_text(f'{{"text": "eins"}}\n{line}\n\n{{"text": "zwei"}}\n')
    with pytest.raises(InputError) as caught:
        list(read_file(describe(str(path))))
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    records = records_and_errors(describe(str(path)))
    good = [record for record in records if not isinstance(record, InputError)]
    assert good == [("eins", "de"), ("zwei", "de")]
