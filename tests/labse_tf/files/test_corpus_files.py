"""Which files a path stands for, and how their names tell kind, format and languages."""

from __future__ import annotations

import logging
import zipfile

import pytest

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


# Path, language, kind, format; for wikipedia the language of other names.
NAMES = """
x/de.txt de monolingual text
de.txt.gz de monolingual text
de.txt.zst de monolingual text
deu.txt de monolingual text
als_Latn.txt sq monolingual text
en-GB.txt en monolingual text
en-in.txt en monolingual text
en_US.txt en monolingual text
pt_BR.tsv pt bitext tsv
nb.tsv.zst no bitext tsv
pt-BR.tsv pt bitext tsv
zh-tw.tsv zh bitext tsv
fr-CA.tsv fr bitext tsv
zh-yue.tsv yue bitext tsv
crh-Latn.tsv crh-Latn bitext tsv
clean/bitext/th/part-00000-of-00002.tfrecord.gz th bitext shard
clean/monolingual/haw/a.tfrecord haw monolingual shard
de.parquet de - parquet
train-00000-of-00010.parquet - - parquet
pt_BR.tfrecord pt - tfrecord
th/a.tfrecord.gz - - tfrecord
enwiki-20260101-pages-articles1.xml-p1p41242.bz2 en monolingual wikipedia
dewiki-20260101-pages-articles-multistream3.xml-p2p5.bz2 de monolingual wikipedia
alswiki-20260101-pages-articles.xml.bz2 gsw monolingual wikipedia
map_bmswiki-latest-pages-articles.xml.bz2 jv monolingual wikipedia
zh_classicalwiki-latest-pages-articles.xml.bz2 lzh monolingual wikipedia
simplewiki-latest-pages-articles.xml.bz2 en monolingual wikipedia
nrmwiki-latest-pages-articles.xml nrf monolingual wikipedia
"""
NO_CORPUS = """
report.json README.md de.tfrecord.xz de.parquet.gz de de-en.de NAME.de-en.fr NAME.en.de v1.2-rc.tar
enwiki-latest-pages-articles-multistream-index.txt.bz2
enwiki-latest-pages-articles-multistream-index1.txt-p1p41242.bz2
"""
# Path, language, foreign side, English side.
MOSES_PAIRS = """
x/N.de-en.de de x/N.de-en.de x/N.de-en.en
x/N.de-en.en de x/N.de-en.de x/N.de-en.en
N.en-de.en de N.en-de.de N.en-de.en
tatoeba.deu-eng.deu de tatoeba.deu-eng.deu tatoeba.deu-eng.eng
a.b.en-pt_BR.en.gz pt a.b.en-pt_BR.pt_BR.gz a.b.en-pt_BR.en.gz
N.en-zh-Hans.zh-Hans.zst zh N.en-zh-Hans.zh-Hans.zst N.en-zh-Hans.en.zst
"""


def test_what_names_tell():
    for line in NAMES.strip().splitlines():
        path, *facts = line.split()
        assert describe(path) == CorpusFile(path, *(None if one == "-" else one for one in facts))
    for path in ["", *NO_CORPUS.split()]:
        assert describe(path) is None, path
    for line in MOSES_PAIRS.strip().splitlines():
        path, language, foreign, english = line.split()
        assert describe(path) == CorpusFile(foreign, language, BITEXT, "moses", english)
        assert describe(path).paths == (foreign, english)
    for path in ("notes.txt", "xx.tsv", "clean/bitext/xx/a.tfrecord.gz", "N.xx-en.en"):
        with pytest.raises(InputError, match="not the code") as caught:
            describe(path)
        assert caught.value.path == path


def test_folders_files_globs_and_kinds(tmp_path):
    touch(tmp_path, "de.tsv", "fr.tsv.gz", "th.txt", "report.json", "deep/er/ru.tsv")
    paths = [file.path for file in found(tmp_path)]
    names = ["de.tsv", "deep/er/ru.tsv", "fr.tsv.gz", "th.txt"]
    assert paths == [str(tmp_path / name) for name in names]
    assert [file.language for file in found(tmp_path / "*.tsv*")] == ["de", "fr"]
    assert [file.language for file in found(tmp_path / "th.txt")] == ["th"]
    # A file named twice counts once.
    assert len(found(tmp_path, tmp_path / "de.tsv", tmp_path / "*.tsv")) == 4
    touch(tmp_path, "monolingual/ja/a.tfrecord.gz", "bitext/sw/a.tfrecord.gz")
    assert [file.language for file in found(tmp_path, kind=BITEXT)] == ["sw", "de", "ru", "fr"]
    assert [file.language for file in found(tmp_path, kind=MONOLINGUAL)] == ["ja", "th"]
    # Files that tell none take on the kind that is asked for.
    tmp_path /= "x"
    touch(tmp_path, "de.parquet", "x.tfrecord.gz")
    assert [file.kind for file in found(tmp_path)] == [None, None]
    assert [file.kind for file in found(tmp_path, kind=BITEXT)] == [BITEXT, BITEXT]


def test_a_moses_pair_is_one_file(tmp_path):
    touch(tmp_path, "N.de-en.de", "N.de-en.en")
    (file,) = found(tmp_path, tmp_path / "N.de-en.en")
    assert file.path == str(tmp_path / "N.de-en.de")

    for present, absent in (("M.de-en.de", "M.de-en.en"), ("L.de-en.en.xz", "L.de-en.de.xz")):
        touch(tmp_path, present)
        with pytest.raises(InputError, match="without the other") as caught:
            found(tmp_path)
        assert caught.value.path == str(tmp_path / present) and absent in caught.value.remedy
        (tmp_path / present).unlink()


def test_what_training_reads(tmp_path):
    touch(tmp_path, "de.tsv", "N.de-en.en", "N.de-en.de", "fr.tfrecord")
    for name in ("de.parquet", "x.tfrecord", "N.tmx"):
        touch(tmp_path, name)
        with pytest.raises(InputError, match="labse corpus filter-") as caught:
            find_plain_files([str(tmp_path / "*.*")])
        assert caught.value.path == str(tmp_path / name)
        (tmp_path / name).unlink()
    files = find_plain_files([str(tmp_path)], kind=BITEXT)
    kept = [("de", MOSES), ("de", TSV), ("fr", TFRECORD)]
    assert [(file.language, file.format) for file in files] == kept


REFUSALS = [
    ("none", None, "no such file or folder"),
    ("train.en", None, "unknown kind of file"),
    ("*.none", None, "holds no corpus files"),
    ("empty", None, "holds no corpus files"),
    ("report.json", None, "unknown kind of file"),
    ("de.tsv", MONOLINGUAL, "holds no monolingual files"),
    ("th.txt", BITEXT, "holds no bitext files"),
    ("full/notes.txt", None, "'notes' is not the code"),
    ("full", None, "'notes' is not the code"),
]


def test_refusals(tmp_path):
    touch(tmp_path, "report.json", "train.en", "de.tsv", "th.txt", "full/notes.txt")
    (tmp_path / "empty").mkdir()
    for name, kind, problem in REFUSALS:
        with pytest.raises(InputError) as caught:
            found(tmp_path / name, kind=kind)
        assert problem in caught.value.problem
        expected = "full/notes.txt" if name == "full" else name
        assert caught.value.path == str(tmp_path / expected)


IN_ORDER = "de/en-de.tsv de/EN-DE.TSV zh/en_zh_TW.tsv fr/WikiMatrix.en-fr.tsv fr/en-fr.txt"
SWAPPED = "de/de-en.tsv fr/fra_eng.tsv ar/arb_Arab-eng_Latn.tsv ar/ar-en.txt"


@pytest.mark.parametrize("names", [IN_ORDER, SWAPPED])
def test_both_languages_count_in_either_order(tmp_path, names):
    for number, (language, name) in enumerate(one.split("/") for one in names.split()):
        rows = [pair[::-1] if names == SWAPPED else pair for pair in PAIRS[language]]
        path = put(tmp_path, f"{number}/{name}", rows)
        (file,) = find_corpus_files([str(path)], kind=BITEXT)
        assert (file.language, file.kind) == (language, BITEXT)
        assert list(read_file(file)) == [(*pair, language) for pair in PAIRS[language]]
        # Training and evaluation read it as the filters do.
        (plain,) = texts.find_files([str(path)], BITEXT, [], key="train.bitext")
        rows = list(read_pairs(plain.path, swapped=plain.swapped))
        assert [row[1:] for row in rows] == PAIRS[language]
        assert [tuple(row) for chunk in texts.columns(plain) for row in chunk] == PAIRS[language]


def test_bitext_without_english_or_with_english_alone_is_refused(tmp_path):
    names = "en.tsv en-US.tsv eng.tsv bitext/en/a.tfrecord.gz de-fr.tsv deu_Latn-fra_Latn.tsv"
    for number, name in enumerate(f"{names} fr-ca.tsv bitext/en-de/a.tfrecord N.de-fr.de".split()):
        path = put(tmp_path, f"{number}/{name}", PAIRS["de"])
        for find in (find_corpus_files, lambda names: texts.find_files(names, BITEXT, [], key="x")):
            with pytest.raises(InputError) as caught:
                find([str(tmp_path / str(number))])
            assert caught.value.path == str(path)


def test_sides_in_two_files(tmp_path):
    for number, (names, language) in enumerate(
        {
            ("train.en", "train.de"): "de",
            ("train.eng", "train.fra"): "fr",
            ("dev.eng_Latn", "dev.zho_Hans"): "zh",
            ("opus.ar-en-train.en", "opus.ar-en-train.ar"): "ar",
            ("N.EN-DE.EN", "N.EN-DE.DE"): "de",
        }.items()
    ):
        folder = tmp_path / str(number)
        for side, name in enumerate(names):
            put(folder, name, [(pair[side],) for pair in PAIRS[language]])
        (folder / "notes.log").write_text("no side of a pair\n")
        expected = [(*pair, language) for pair in PAIRS[language]]
        by_name = [str(folder / name) for name in names]
        for inputs in ([str(folder)], by_name, by_name[::-1]):
            (file,) = find_corpus_files(inputs, kind=BITEXT)
            assert list(read_file(file)) == expected


def test_capital_extensions(tmp_path):
    for extension in (".TSV", ".tsv.Xz"):
        path = tmp_path / f"de{extension}"
        with open_to_write(path, name=extension.lower()) as file:
            file.writelines(f"{source}\t{target}\n" for source, target in PAIRS["de"])
        (file,) = found(path, kind=BITEXT)
        assert list(read_file(file)) == [(*pair, "de") for pair in PAIRS["de"]]


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


def test_an_existing_path_is_no_pattern_and_what_a_killed_job_left_no_corpus(tmp_path):
    # A pattern of those names would match these.
    for other in ("data v", "axb", "whats", "a"):
        put(tmp_path, f"{other}/zh.tsv", PAIRS["zh"])
    for name in ("data [v2]", "a*b", "what?", "[ab]", "{x} y", "ملفات"):
        folder = tmp_path / name
        put(folder, "de.tsv", PAIRS["de"])
        put(folder, "de[1].txt.d/fr.tsv", PAIRS["fr"])
        put(folder, "out.partial/out/bitext/fr/part-00000-of-00001.tfrecord.gz", PAIRS["fr"])
        assert [file.language for file in found(folder)] == ["de", "fr"]
        assert [file.language for file in found(folder / "de.tsv")] == ["de"]
    for name in ("de.tsv", "fr.tsv", "ca.tsv"):
        put(tmp_path, name, PAIRS["de"])
    assert [file.language for file in found(tmp_path / "[df]?.tsv")] == ["de", "fr"]


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_a_zip_of_opus_and_damaged_ones(tmp_path):
    sides = ["".join(f"{text}\n" for text in side) for side in zip(*PAIRS["zh"], strict=True)]
    stem, more = "Europarl.en-zh", {"README": "text", "LICENSE": "text"}
    members = {f"{stem}.en": sides[0], f"{stem}.zh": sides[1], f"{stem}.xml": "<a/>"}
    (file,) = found(write_zip(tmp_path / "en-zh.txt.zip", members | more), kind=BITEXT)
    assert list(read_file(file)) == [(*pair, "zh") for pair in PAIRS["zh"]]
    short = {"N.de-en.de": "a\n", "N.de-en.en": "b\nc\n"}
    for share, members in ((0, short), (0.5, short), (1, {"README": "text"}), (1, short)):
        path = write_zip(tmp_path / "x.zip", members)
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])
        (file,) = found(path, kind=BITEXT)
        with pytest.raises(InputError) as caught:
            list(read_file(file))
        assert caught.value.path.startswith(str(path))
