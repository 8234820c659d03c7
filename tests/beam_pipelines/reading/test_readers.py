"""Moses, Parquet and loose TFRecord files: what is read of them, and what is refused."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_files import read_corpus, write_lines

from beam_pipelines.filtering import shards
from beam_pipelines.reading import readers
from beam_pipelines.records import Pair, Sentence, encode_example, write_records
from labse_tf.cli.main import main
from labse_tf.errors import InputError

ENGLISH = ["Good morning.", "Where is the station?", "The water is cold."]
FOREIGN = {
    "de": ["Guten Morgen.", "Wo ist der Bahnhof?", "Das Wasser ist kalt."],
    "ja": ["おはようございます。", "駅はどこですか。", "水が冷たい。"],
    "ar": ["صباح الخير.", "أين المحطة؟", "الماء بارد."],
    "th": ["สวัสดีตอนเช้า", "สถานีอยู่ที่ไหน", "น้ำเย็น"],
    "hi": ["सुप्रभात।", "स्टेशन कहाँ है?", "पानी ठंडा है।"],
    "am": ["እንደምን አደርክ።", "ጣቢያው የት ነው?", "ውሃው ቀዝቃዛ ነው።"],
}


def pairs_of(language):
    return [Pair(*sides, language) for sides in zip(ENGLISH, FOREIGN[language], strict=True)]


def sentences_of(language):
    return [Sentence(text, language) for text in FOREIGN[language]]


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=2)


def write_tfrecord(path, rows):
    with gzip.open(path, "wb") if path.suffix == ".gz" else open(path, "wb") as stream:
        write_records(stream, [encode_example(row) for row in rows])


def test_moses(tmp_path):
    for language, *sides in (
        ("de", "News.de-en.de", "News.de-en.en"),
        ("ar", "tatoeba.ara-eng.ara.gz", "tatoeba.ara-eng.eng.gz"),
        ("hi", "N.en-hi_IN.hi_IN", "N.en-hi_IN.en"),
    ):
        names = [tmp_path / language / side for side in sides]
        for name, texts in zip(names, (FOREIGN[language], ENGLISH), strict=True):
            write_lines(name, texts)
        assert read_corpus(tmp_path / language) == read_corpus(names[1]) == pairs_of(language)
    # An empty side is left to the filters.
    (tmp_path / "de/News.de-en.de").write_text("Guten Morgen.\n\n\n")
    assert read_corpus(tmp_path / "de")[1] == Pair(ENGLISH[1], "", "de")
    for foreign, english, fault, message in (
        (b"a\nb\n", b"a\nb\nc\n", "N.de-en.de", ":2: the last line, but .*N.de-en.en has more"),
        (b"a\nb\nc\n", b"a\nb\n", "N.de-en.en", ":2: the last line, but .*N.de-en.de has more"),
        (b"", b"a\n", "N.de-en.de", "the file is empty"),
    ):
        (tmp_path / "N.de-en.de").write_bytes(foreign)
        (tmp_path / "N.de-en.en").write_bytes(english)
        with pytest.raises(InputError, match=message) as caught:
            read_corpus(tmp_path / fault)
        assert caught.value.path == str(tmp_path / fault)


def test_parquet(tmp_path):
    (tmp_path / "a").mkdir()
    write_parquet(tmp_path / "a" / "ja.parquet", text=FOREIGN["ja"], other=[1, 2, 3])
    write_parquet(tmp_path / "ja.parquet", src_raw=ENGLISH, tgt_raw=FOREIGN["ja"])
    assert read_corpus(tmp_path / "a") == sentences_of("ja")
    assert read_corpus(tmp_path / "ja.parquet") == pairs_of("ja")
    # Codes of the column go before the file's name, which stands in where there is none.
    codes = [None, "hin", "pt_BR", "xx"]
    write_parquet(
        tmp_path / "de.parquet",
        text=[" Hallo ", "नमस्ते", "Olá", "Bonjorn"],
        language_code=pa.array(codes).dictionary_encode(),
    )
    expected = [("Hallo", "de"), ("नमस्ते", "hi"), ("Olá", "pt"), ("Bonjorn", "xx")]
    assert read_corpus(tmp_path / "de.parquet") == [Sentence(*one) for one in expected]


@pytest.mark.parametrize(
    ("name", "kind", "columns", "message"),
    [
        ("de", None, {"words": ["a"]}, "has no column 'text'"),
        ("de", "bitext", {"text": ["a"]}, "has no column 'src_raw'"),
        ("de", None, {"src_raw": ["a"]}, "has no column 'tgt_raw'"),
        ("data", None, {"text": ["a"]}, "has no column 'language_code'"),
        ("de", None, {"text": [1]}, "the column 'text' holds int64, not text"),
        ("de", None, {"text": ["a", "b", None]}, "row 3 has no value in the column 'text'"),
        ("x", None, {"text": ["a"] * 2, "language_code": ["de", None]}, "row 2 .*'language_code'"),
        ("de", None, {"text": pa.array([], pa.string())}, "the file has no rows"),
    ],
)
def test_bad_parquet(tmp_path, name, kind, columns, message):
    path = tmp_path / f"{name}.parquet"
    write_parquet(path, **columns)
    with pytest.raises(InputError, match=message) as caught:
        read_corpus(path, kind)
    assert caught.value.path == str(path)
    for content in (b"", b"PAR1 but no more than that PAR1"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="the Parquet file cannot be read"):
            read_corpus(path)


def test_tfrecords(tmp_path):
    for name, code in (("de.tfrecord", {}), ("data.tfrecord.gz", {"language_code": "deu"})):
        path = tmp_path / name
        write_tfrecord(path, [{"text": text, **code} for text in FOREIGN["de"]])
        assert read_corpus(path) == sentences_of("de")
        rows = [{"src_raw": one.source, "tgt_raw": one.target, **code} for one in pairs_of("de")]
        write_tfrecord(path, rows)
        assert read_corpus(path) == pairs_of("de")
    for name, kind, rows, message in (
        ("x", None, [{"text": "a", "language_code": "de"}, {"text": "b"}], "record 2: no .*name"),
        ("de", None, [{"src_raw": "a"}], "record 1: no feature 'tgt_raw'"),
        ("de", "bitext", [{"text": "a"}], "record 1: no feature 'src_raw'"),
    ):
        path = tmp_path / f"{name}.tfrecord"
        write_tfrecord(path, rows)
        with pytest.raises(InputError, match=message) as caught:
            read_corpus(path, kind)
        assert caught.value.path == str(path)


def write_mixed_corpus(folder):
    """Text of all the languages above, and two records of no language that there is."""
    rows = [row for language in FOREIGN for row in pairs_of(language)]
    rows += [Pair("Good morning.", "Bonjorn.", "xx"), Pair("Thank you.", "Mercés.", "xx")]
    sources, targets, codes = zip(*rows, strict=True)
    write_parquet(folder / "data.parquet", src_raw=sources, tgt_raw=targets, language_code=codes)
    return rows


def test_filters_count_what_is_of_other_languages(tmp_path, monkeypatch):
    # Shards of mixed files are planned from their text.
    monkeypatch.setattr(shards, "_plan_language", lambda one, _: (one[0], 1 + one[1] // 100))
    rows = write_mixed_corpus(tmp_path)
    (tmp_path / "de.tsv").write_text("Good evening.\tGuten Abend.\n")
    out = tmp_path / "out"
    assert main(["corpus", "filter-bitext", str(tmp_path), "--out", str(out)]) == 0
    report = json.loads((out / "report.json").read_text())
    assert sorted(report["languages"]) == sorted([*FOREIGN, "xx"])
    assert report["languages"]["xx"]["read"] == 2
    assert report["languages"]["xx"]["dropped"]["other_language"] == 2
    none = dict.fromkeys(report["total"]["dropped"], 0)
    assert report["languages"]["de"] == {"read": 4, "kept": 4, "dropped": none}
    assert len(list((out / "bitext" / "de").iterdir())) == 2
    kept = [row for row in rows if row.language != "xx"]
    assert sorted(read_corpus(out)) == sorted([*kept, Pair("Good evening.", "Guten Abend.", "de")])


def test_languages_that_are_not_the_papers_are_kept(tmp_path, capfd):
    """Their code is in the name of a file, or in its records."""
    texts = {"src_raw": ["Where is the house?"], "tgt_raw": ["Kot lakaz ete, mo frer?"]}
    write_parquet(tmp_path / "mfe.parquet", **texts)
    write_parquet(tmp_path / "raw.parquet", **texts, language_code=["bak"])
    (tmp_path / "crh_Latn.tsv").write_text("Good morning, all.\tSabanız hayırlı olsun.\n", "utf-8")
    out = tmp_path / "out"
    assert main(["corpus", "filter-bitext", str(tmp_path), "--out", str(out)]) == 0
    report = json.loads((out / "report.json").read_text())
    assert {code: row["kept"] for code, row in report["languages"].items()} == {
        **{"ba": 1, "crh-Latn": 1, "mfe": 1},
    }
    assert report["unchecked"] == {"crh-Latn": ["wrong_language"], "mfe": ["wrong_language"]}
    assert sorted(path.name for path in (out / "bitext").iterdir()) == ["ba", "crh-Latn", "mfe"]
    crimean = Pair("Good morning, all.", "Sabanız hayırlı olsun.", "crh-Latn")
    assert sorted(read_corpus(out))[0] == crimean
    assert "mfe: not checked, for want of knowledge of the language" in capfd.readouterr().out


def test_batches_are_of_one_language(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(readers, "RECORDS_PER_BATCH", 2)
    batches = list(readers.in_batches(write_mixed_corpus(tmp_path)))
    assert sorted(len(batch.records) for batch in batches) == [1] * 6 + [2] * 7
    assert all(record.language == batch.language for batch in batches for record in batch.records)
    # Records of other languages are told.
    out = str(tmp_path / "vocab")
    assert main(["vocab", "build", str(tmp_path), "--out", out, "--vocab-size", "900"]) == 0
    assert "left out: 2 records in languages that have no code" in caplog.text
