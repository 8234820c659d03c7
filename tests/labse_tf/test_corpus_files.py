"""Which files a path stands for."""

from __future__ import annotations

import pytest

from labse_tf.corpus_files import BITEXT, MONOLINGUAL, CorpusFile, describe, find_corpus_files
from labse_tf.errors import InputError


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
        ("clean/bitext/th/part-00000-of-00002.tfrecord.gz", "th", BITEXT, "tfrecord"),
        ("clean/monolingual/haw/a.tfrecord", "haw", MONOLINGUAL, "tfrecord"),
    ],
)
def test_describe(path, language, kind, format_):
    assert describe(path) == CorpusFile(path, language, kind, format_)


@pytest.mark.parametrize(
    "path",
    [
        "report.json",
        "README.md",
        "de.tfrecord",
        "th/a.tfrecord.gz",
        "words/th/a.tfrecord",
        "de",
        "",
    ],
)
def test_no_corpus_file(path):
    assert describe(path) is None


@pytest.mark.parametrize("path", ["notes.txt", "xx.tsv", "clean/bitext/xx/a.tfrecord.gz"])
def test_unknown_language(path):
    with pytest.raises(InputError) as caught:
        describe(path)
    assert caught.value.path == path
    assert "no language code" in caught.value.problem


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
        ("full/notes.txt", None, "'notes' is no language code", ""),
        ("full", None, "'notes' is no language code", ""),
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
