"""Which files a path stands for."""

from __future__ import annotations

import pytest

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
        ("de.txt.xz", "de", MONOLINGUAL, "text"),
        ("de.txt.bz2", "de", MONOLINGUAL, "text"),
        ("de.txt.zst", "de", MONOLINGUAL, "text"),
        ("pt_BR.tsv", "pt", BITEXT, "tsv"),
        ("zh-Hant.tsv.gz", "zh", BITEXT, "tsv"),
        ("nb.tsv.zst", "no", BITEXT, "tsv"),
        ("clean/bitext/th/part-00000-of-00002.tfrecord.gz", "th", BITEXT, "shard"),
        ("clean/monolingual/haw/a.tfrecord", "haw", MONOLINGUAL, "shard"),
        ("deu.txt", "de", MONOLINGUAL, "text"),
        ("de.parquet", "de", None, "parquet"),
        ("train-00000-of-00010.parquet", None, None, "parquet"),
        ("pt_BR.tfrecord", "pt", None, "tfrecord"),
        ("th/a.tfrecord.gz", None, None, "tfrecord"),
        ("words/th/a.tfrecord", None, None, "tfrecord"),
    ],
)
def test_describe(path, language, kind, format_):
    assert describe(path) == CorpusFile(path, language, kind, format_)


@pytest.mark.parametrize(
    "path",
    [
        "report.json",
        "README.md",
        "de.tfrecord.xz",
        "de.parquet.gz",
        "de",
        "de-en.de",
        "NAME.de-en.fr",
        "NAME.en.de",
        "v1.2-rc.tar",
        "",
    ],
)
def test_no_corpus_file(path):
    assert describe(path) is None


@pytest.mark.parametrize(
    "path, language, foreign, english",
    [
        ("x/N.de-en.de", "de", "x/N.de-en.de", "x/N.de-en.en"),
        ("x/N.de-en.en", "de", "x/N.de-en.de", "x/N.de-en.en"),
        ("N.en-de.de", "de", "N.en-de.de", "N.en-de.en"),
        ("N.en-de.en", "de", "N.en-de.de", "N.en-de.en"),
        ("tatoeba.deu-eng.deu", "de", "tatoeba.deu-eng.deu", "tatoeba.deu-eng.eng"),
        ("tatoeba.cmn-eng.eng", "zh", "tatoeba.cmn-eng.cmn", "tatoeba.cmn-eng.eng"),
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


def test_kinds_are_kept_apart(tmp_path):
    touch(tmp_path, "de.tsv", "th.txt", "monolingual/ja/a.tfrecord.gz", "bitext/fr/a.tfrecord.gz")
    assert [file.language for file in found(tmp_path, kind=BITEXT)] == ["fr", "de"]
    assert [file.language for file in found(tmp_path, kind=MONOLINGUAL)] == ["ja", "th"]
    assert len(found(tmp_path)) == 4


def test_the_kind_that_is_asked_for_is_that_of_files_that_tell_none(tmp_path):
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


def test_a_moses_pair_without_english(tmp_path):
    touch(tmp_path, "N.de-fr.de", "N.de-fr.fr")
    with pytest.raises(InputError, match="neither 'de' nor 'fr' is English"):
        found(tmp_path)


@pytest.mark.parametrize("name", ["de.parquet", "x.tfrecord", "N.tmx"])
def test_what_training_cannot_read(tmp_path, name):
    touch(tmp_path, "de.tsv", "N.de-en.en", "N.de-en.de", "fr.tfrecord", name)
    with pytest.raises(InputError, match="labse corpus filter-") as caught:
        find_plain_files([str(tmp_path / "*.*")])
    assert caught.value.path == str(tmp_path / name)


def test_what_training_reads(tmp_path):
    touch(tmp_path, "de.tsv", "N.de-en.en", "N.de-en.de", "fr.tfrecord")
    files = find_plain_files([str(tmp_path)], kind=BITEXT)
    assert [(file.language, file.format) for file in files] == [
        ("de", MOSES), ("de", TSV), ("fr", TFRECORD),
    ]  # fmt: skip


def test_a_file_named_twice_counts_once(tmp_path):
    touch(tmp_path, "de.tsv", "fr.tsv")
    assert len(found(tmp_path, tmp_path / "de.tsv", tmp_path / "*.tsv")) == 2


@pytest.mark.parametrize(
    "name, kind, problem, remedy",
    [
        ("none", None, "no such file or folder", "check the path"),
        ("none.tsv", None, "no such file or folder", "check the path"),
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
    touch(tmp_path, "report.json", "de.tsv", "th.txt", "full/notes.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        found(tmp_path / name, kind=kind)
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    expected = "full/notes.txt" if name == "full" else name
    assert caught.value.path == str(tmp_path / expected)
