"""Which files a path stands for, and how their names tell kind, format and languages."""

from __future__ import annotations

import logging
import zipfile

import pytest

from beam_pipelines import filter_bitext
from beam_pipelines.reading.readers import read_file
from labse_tf.data import texts
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import (
    BITEXT,
    MONOLINGUAL,
    MOSES,
    TFRECORD,
    TSV,
    CorpusFile,
    describe,
    find_corpus_files,
    find_plain_files,
)
from labse_tf.files.textio import open_to_write, read_pairs

PAIRS = {
    "de": [("Good morning.", "Guten Morgen."), ("The water is cold.", "Das Wasser ist kalt.")],
    "fr": [("Good morning.", "Bonjour."), ("The water is cold.", "L'eau est froide.")],
    "zh": [("Good morning.", "早上好。"), ("The water is cold.", "水很冷。")],
    "ar": [("Good morning.", "صباح الخير."), ("The water is cold.", "الماء بارد.")],
    "ca": [("Good morning.", "Bon dia."), ("The water is cold.", "L'aigua és freda.")],
}


def put(folder, name, rows):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    return path


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x\ty\n")


def found(*inputs, **options):
    return find_corpus_files(map(str, inputs), **options)


@pytest.mark.parametrize(
    "path, language, kind, format_",
    [
        ("x/de.txt", "de", MONOLINGUAL, "text"),
        ("de.txt.gz", "de", MONOLINGUAL, "text"),
        ("de.txt.zst", "de", MONOLINGUAL, "text"),
        ("pt_BR.tsv", "pt", BITEXT, "tsv"),
        ("nb.tsv.zst", "no", BITEXT, "tsv"),
        ("clean/bitext/th/part-00000-of-00002.tfrecord.gz", "th", BITEXT, "shard"),
        ("clean/monolingual/haw/a.tfrecord", "haw", MONOLINGUAL, "shard"),
        ("deu.txt", "de", MONOLINGUAL, "text"),
        ("de.parquet", "de", None, "parquet"),
        ("train-00000-of-00010.parquet", None, None, "parquet"),
        ("pt_BR.tfrecord", "pt", None, "tfrecord"),
        ("th/a.tfrecord.gz", None, None, "tfrecord"),
    ],
)
def test_describe(path, language, kind, format_):
    assert describe(path) == CorpusFile(path, language, kind, format_)


@pytest.mark.parametrize(
    "path",
    [
        *("report.json", "README.md", "de.tfrecord.xz", "de.parquet.gz", "de", "de-en.de"),
        *("NAME.de-en.fr", "NAME.en.de", "v1.2-rc.tar", ""),
        "enwiki-latest-pages-articles-multistream-index.txt.bz2",
        "enwiki-latest-pages-articles-multistream-index1.txt-p1p41242.bz2",
    ],
)
def test_no_corpus_file(path):
    assert describe(path) is None


@pytest.mark.parametrize(
    "path, language, foreign, english",
    [
        ("x/N.de-en.de", "de", "x/N.de-en.de", "x/N.de-en.en"),
        ("x/N.de-en.en", "de", "x/N.de-en.de", "x/N.de-en.en"),
        ("N.en-de.en", "de", "N.en-de.de", "N.en-de.en"),
        ("tatoeba.deu-eng.deu", "de", "tatoeba.deu-eng.deu", "tatoeba.deu-eng.eng"),
        ("a.b.en-pt_BR.en.gz", "pt", "a.b.en-pt_BR.pt_BR.gz", "a.b.en-pt_BR.en.gz"),
        ("N.en-zh-Hans.zh-Hans.zst", "zh", "N.en-zh-Hans.zh-Hans.zst", "N.en-zh-Hans.en.zst"),
    ],
)
def test_moses_pairs(path, language, foreign, english):
    file = CorpusFile(foreign, language, BITEXT, "moses", english)
    assert describe(path) == file
    assert file.paths == (foreign, english)


@pytest.mark.parametrize(
    "path", ["notes.txt", "xx.tsv", "clean/bitext/xx/a.tfrecord.gz", "N.xx-en.en"]
)
def test_unknown_language(path):
    with pytest.raises(InputError) as caught:
        describe(path)
    assert caught.value.path == path
    assert "not the code" in caught.value.problem


def test_a_folder_a_file_and_a_glob(tmp_path):
    touch(tmp_path, "de.tsv", "fr.tsv.gz", "th.txt", "report.json", "deep/er/ru.tsv")
    paths = [file.path for file in found(tmp_path)]
    names = ["de.tsv", "deep/er/ru.tsv", "fr.tsv.gz", "th.txt"]
    assert paths == [str(tmp_path / name) for name in names]
    assert [file.language for file in found(tmp_path / "*.tsv*")] == ["de", "fr"]
    assert [file.language for file in found(tmp_path / "th.txt")] == ["th"]
    # A file named twice counts once.
    assert len(found(tmp_path, tmp_path / "de.tsv", tmp_path / "*.tsv")) == 4


def test_kinds_are_kept_apart(tmp_path):
    touch(tmp_path, "de.tsv", "th.txt", "monolingual/ja/a.tfrecord.gz", "bitext/fr/a.tfrecord.gz")
    assert [file.language for file in found(tmp_path, kind=BITEXT)] == ["fr", "de"]
    assert [file.language for file in found(tmp_path, kind=MONOLINGUAL)] == ["ja", "th"]
    assert len(found(tmp_path)) == 4
    # Files that tell none take on the kind that is asked for.
    tmp_path /= "x"
    touch(tmp_path, "de.parquet", "x.tfrecord.gz")
    assert [file.kind for file in found(tmp_path)] == [None, None]
    assert [file.kind for file in found(tmp_path, kind=BITEXT)] == [BITEXT, BITEXT]


def test_a_moses_pair_is_one_file(tmp_path):
    touch(tmp_path, "N.de-en.de", "N.de-en.en")
    (file,) = found(tmp_path, tmp_path / "N.de-en.en")
    assert file.path == str(tmp_path / "N.de-en.de")


@pytest.mark.parametrize(
    "present, absent", [("N.de-en.de", "N.de-en.en"), ("N.de-en.en.xz", "N.de-en.de.xz")]
)
def test_one_side_of_a_moses_pair(tmp_path, present, absent):
    touch(tmp_path, present)
    with pytest.raises(InputError, match="without the other") as caught:
        found(tmp_path)
    assert caught.value.path == str(tmp_path / present)
    assert absent in caught.value.remedy


@pytest.mark.parametrize("name", ["de.parquet", "x.tfrecord", "N.tmx"])
def test_what_training_reads(tmp_path, name):
    touch(tmp_path, "de.tsv", "N.de-en.en", "N.de-en.de", "fr.tfrecord", name)
    with pytest.raises(InputError, match="labse corpus filter-") as caught:
        find_plain_files([str(tmp_path / "*.*")])
    assert caught.value.path == str(tmp_path / name)
    (tmp_path / name).unlink()
    files = find_plain_files([str(tmp_path)], kind=BITEXT)
    kept = [("de", MOSES), ("de", TSV), ("fr", TFRECORD)]
    assert [(file.language, file.format) for file in files] == kept


@pytest.mark.parametrize(
    "name, kind, problem, remedy",
    [
        ("none", None, "no such file or folder", "check the path"),
        ("train.en", None, "unknown kind of file", ""),
        ("*.none", None, "holds no corpus files", "<lang>.tsv[.gz]"),
        ("empty", None, "holds no corpus files", "<lang>.txt[.gz]"),
        ("report.json", None, "unknown kind of file", "<lang>.tsv[.gz]"),
        ("de.tsv", MONOLINGUAL, "holds no monolingual files", "monolingual/<lang>/"),
        ("th.txt", BITEXT, "holds no bitext files", "bitext/<lang>/"),
        ("full/notes.txt", None, "'notes' is not the code", ""),
        ("full", None, "'notes' is not the code", ""),
    ],
)
def test_refusals(tmp_path, name, kind, problem, remedy):
    touch(tmp_path, "report.json", "train.en", "de.tsv", "th.txt", "full/notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        found(tmp_path / name, kind=kind)
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    expected = "full/notes.txt" if name == "full" else name
    assert caught.value.path == str(tmp_path / expected)


@pytest.mark.parametrize(
    ("name", "language", "swapped"),
    [
        ("en-de.tsv", "de", False),
        ("de-en.tsv", "de", True),
        ("EN-DE.TSV", "de", False),
        ("fra_eng.tsv", "fr", True),
        ("en_zh_TW.tsv", "zh", False),
        ("arb_Arab-eng_Latn.tsv", "ar", True),
        ("WikiMatrix.en-fr.tsv", "fr", False),
        ("en-fr.txt", "fr", False),
        ("ar-en.txt", "ar", True),
    ],
)
def test_both_languages_count_in_either_order(tmp_path, name, language, swapped):
    rows = [pair[::-1] if swapped else pair for pair in PAIRS[language]]
    path = put(tmp_path, name, rows)
    (file,) = find_corpus_files([str(tmp_path)], kind=BITEXT)
    assert (file.language, file.kind) == (language, BITEXT)
    expected = [(*pair, language) for pair in PAIRS[language]]
    assert list(read_file(file)) == expected
    # Training and evaluation read it as the filters do.
    (plain,) = texts.find_files([str(path)], BITEXT, [], key="train.bitext")
    rows = list(read_pairs(plain.path, swapped=plain.swapped))
    assert [row[1:] for row in rows] == PAIRS[language]
    assert [tuple(row) for chunk in texts.columns(plain) for row in chunk] == PAIRS[language]


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("pt-BR.tsv", "pt"),
        ("zh-tw.tsv", "zh"),
        ("fr-CA.tsv", "fr"),
        ("zh-yue.tsv", "yue"),
        ("crh-Latn.tsv", "crh-Latn"),
        ("en-GB.txt", "en"),
        ("en-in.txt", "en"),
        ("en_US.txt", "en"),
    ],
)
def test_a_region_is_no_second_language(name, language):
    file = describe(name)
    assert (file.language, file.swapped) == (language, False)
    assert file.kind == (BITEXT if name.endswith(".tsv") else MONOLINGUAL)


@pytest.mark.parametrize(
    "name",
    ["en.tsv", "en-US.tsv", "eng.tsv", "bitext/en/part-00000-of-00001.tfrecord.gz"]
    + ["de-fr.tsv", "deu_Latn-fra_Latn.tsv", "ru-uk.tsv", "fr-ca.tsv", "bitext/en-de/a.tfrecord"]
    + ["N.de-fr.de"],
)
def test_bitext_without_english_or_with_english_alone_is_refused(tmp_path, name):
    path = put(tmp_path, name, PAIRS["de"])
    for find in (find_corpus_files, lambda names: texts.find_files(names, BITEXT, [], key="x")):
        with pytest.raises(InputError) as caught:
            find([str(tmp_path)])
        assert caught.value.path == str(path)


def test_a_job_on_a_folder_of_pairs_keeps_them_apart(tmp_path):
    for name, language in (("en-de", "de"), ("zh-en", "zh")):
        rows = [pair[::-1] if name == "zh-en" else pair for pair in PAIRS[language]]
        put(tmp_path, f"in/{name}.tsv", rows)
    filter_bitext.run([str(tmp_path / "in")], str(tmp_path / "out"))
    records = [one for file in found(tmp_path / "out", kind=BITEXT) for one in read_file(file)]
    expected = [(*pair, language) for language in ("de", "zh") for pair in PAIRS[language]]
    assert sorted(records) == sorted(expected)


@pytest.mark.parametrize(
    ("names", "language"),
    [
        (("train.en", "train.de"), "de"),
        (("train.eng", "train.fra"), "fr"),
        (("dev.eng_Latn", "dev.zho_Hans"), "zh"),
        (("opus.ar-en-train.en", "opus.ar-en-train.ar"), "ar"),
        (("N.EN-DE.EN", "N.EN-DE.DE"), "de"),
    ],
)
def test_sides_in_two_files(tmp_path, names, language):
    for side, name in enumerate(names):
        put(tmp_path, name, [(pair[side],) for pair in PAIRS[language]])
    (tmp_path / "notes.log").write_text("no side of a pair\n")
    expected = [(*pair, language) for pair in PAIRS[language]]
    by_name = [str(tmp_path / name) for name in names]
    for inputs in ([str(tmp_path)], by_name, by_name[::-1]):
        (file,) = find_corpus_files(inputs, kind=BITEXT)
        assert list(read_file(file)) == expected


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("enwiki-20260101-pages-articles1.xml-p1p41242.bz2", "en"),
        ("dewiki-20260101-pages-articles-multistream3.xml-p2p5.bz2", "de"),
        ("alswiki-20260101-pages-articles.xml.bz2", "gsw"),
        ("map_bmswiki-latest-pages-articles.xml.bz2", "jv"),
        ("zh_classicalwiki-latest-pages-articles.xml.bz2", "lzh"),
        ("simplewiki-latest-pages-articles.xml.bz2", "en"),
        ("nrmwiki-latest-pages-articles.xml", "nrf"),
    ],
)
def test_dumps_of_wikipedia(name, language):
    assert describe(name)[1:4] == (language, MONOLINGUAL, "wikipedia")
    assert describe("als_Latn.txt").language == "sq"


@pytest.mark.parametrize("extension", [".TSV", ".Tsv", ".TSV.GZ", ".tsv.Xz"])
def test_capital_extensions(tmp_path, extension):
    path = tmp_path / f"de{extension}"
    with open_to_write(path, name=extension.lower()) as file:
        file.writelines(f"{source}\t{target}\n" for source, target in PAIRS["de"])
    (found,) = find_corpus_files([str(tmp_path)], kind=BITEXT)
    assert list(read_file(found)) == [(*pair, "de") for pair in PAIRS["de"]]
    assert [row[1:] for row in read_pairs(path)] == PAIRS["de"]


def test_ignored_files_are_counted_once_with_examples(tmp_path, caplog):
    put(tmp_path, "de.tsv", PAIRS["de"])
    for name in ("a.csv", "b.docx", "c.json", "report.json", "examples.md", ".hidden"):
        (tmp_path / name).touch()
    with caplog.at_level(logging.INFO, "labse"):
        for _ in range(2):
            assert len(find_corpus_files([str(tmp_path)])) == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert str(tmp_path) in line and " 3 " in line
    assert all(name in line for name in ("a.csv", "b.docx", "c.json"))


@pytest.mark.parametrize("name", ["data [v2]", "a*b", "what?", "[ab]", "{x} y", "ملفات"])
def test_an_existing_path_is_no_pattern(tmp_path, name):
    put(tmp_path, f"{name}/de.tsv", PAIRS["de"])
    put(tmp_path, f"{name}/de[1].txt.d/fr.tsv", PAIRS["fr"])
    # A pattern of that name would match these.
    for other in ("data v", "axb", "whats", "a"):
        put(tmp_path, f"{other}/zh.tsv", PAIRS["zh"])
    folder = tmp_path / name
    assert [file.language for file in find_corpus_files([str(folder)])] == ["de", "fr"]
    assert [file.language for file in find_corpus_files([str(folder / "de.tsv")])] == ["de"]


def test_a_pattern_is_used_where_no_such_path_is(tmp_path):
    for name in ("de.tsv", "fr.tsv", "ca.tsv"):
        put(tmp_path, name, PAIRS["de"])
    found = find_corpus_files([str(tmp_path / "[df]?.tsv")])
    assert [file.language for file in found] == ["de", "fr"]


def test_what_a_killed_job_left_is_no_corpus(tmp_path):
    put(tmp_path, "de.tsv", PAIRS["de"])
    put(tmp_path, "out.partial/out/bitext/fr/part-00000-of-00001.tfrecord.gz", PAIRS["fr"])
    assert [file.language for file in find_corpus_files([str(tmp_path)])] == ["de"]


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def test_a_zip_of_opus(tmp_path, language="zh"):
    sides = ["".join(f"{text}\n" for text in side) for side in zip(*PAIRS[language], strict=True)]
    path = tmp_path / f"en-{language}.txt.zip"
    stem = f"Europarl.en-{language}"
    members = {f"{stem}.en": sides[0], f"{stem}.{language}": sides[1], f"{stem}.xml": "<a/>"}
    write_zip(path, members | {"README": "text", "LICENSE": "text"})
    (file,) = find_corpus_files([str(path)], kind=BITEXT)
    assert list(read_file(file)) == [(*pair, language) for pair in PAIRS[language]]


@pytest.mark.parametrize("damage", ["empty", "cut", "no corpus", "side cut off"])
def test_a_damaged_zip_is_named(tmp_path, damage):
    path = tmp_path / "x.zip"
    short = {"N.de-en.de": "a\n", "N.de-en.en": "b\nc\n"}
    write_zip(path, {"README": "text"} if damage == "no corpus" else short)
    if damage in ("empty", "cut"):
        data = path.read_bytes()
        path.write_bytes(b"" if damage == "empty" else data[: len(data) // 2])
    (file,) = find_corpus_files([str(path)], kind=BITEXT)
    with pytest.raises(InputError) as caught:
        list(read_file(file))
    assert caught.value.path.startswith(str(path))
