"""The demo corpus as written: files, invariants, the same bytes every time, the command."""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from labse_tf.cli import main as cli
from labse_tf.demo.corpus import write
from labse_tf.demo.corpus.sources import MESSAGES, SOURCES, Source
from labse_tf.demo.corpus.write import MAX_DEV_PAIRS, MIN_WORDS, sentence_key, write_demo_corpus
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, MONOLINGUAL, find_corpus_files
from labse_tf.files.textio import read_lines, read_pairs

# Enough of every kind; all sources take half a minute.
SOME = [s for s in SOURCES if s.distribution in ("Django", "djangorestframework", "babel")]
SMALL = [s for s in SOURCES if s.distribution in ("django-formtools", "django-filter")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("corpora") / "demo"
    write_demo_corpus(out, sources=SOME)
    return out


def all_pairs(folder: Path) -> dict[str, list[tuple[str, str]]]:
    files = find_corpus_files([str(folder)], kind=BITEXT)
    return {file.language: [pair[1:] for pair in read_pairs(file.path)] for file in files}


def keys(pairs_of: dict[str, list[tuple[str, str]]]) -> set[str]:
    return {sentence_key(text) for pairs in pairs_of.values() for pair in pairs for text in pair}


def test_dev_pairs_are_apart_and_monolingual_text_is_that_of_the_training_pairs(corpus):
    bitext, dev = all_pairs(corpus / "bitext"), all_pairs(corpus / "dev")
    assert len(bitext) > 90 and "en" not in bitext and len(dev["de"]) > 40
    assert ("Germany", "Ujerumani") in bitext["sw"] and ("Monday", "月曜日") in bitext["ja"]
    files = find_corpus_files([str(corpus / "monolingual")], kind=MONOLINGUAL)
    text = {file.language: [line for _, line in read_lines(file.path)] for file in files}
    assert set(text) == {"en", *bitext}
    assert set(text["en"]) == {pair[0] for pairs in bitext.values() for pair in pairs}
    for language, pairs in bitext.items():
        assert text[language] == sorted({foreign for _, foreign in pairs})
        lines = [f"{english}\t{foreign}" for english, foreign in pairs]
        assert lines == sorted(set(lines))
    assert not keys(bitext) & keys(dev)
    for pairs in dev.values():
        assert len(pairs) <= MAX_DEV_PAIRS
        for side in zip(*pairs, strict=True):
            assert len({sentence_key(text) for text in side}) == len(side)
        assert all(len(sentence_key(english).split()) >= MIN_WORDS for english, _ in pairs)


def test_sources_tell_what_came_from_where(corpus):
    facts = json.loads((corpus / write.SOURCES_FILE).read_text(encoding="utf-8"))
    bitext, dev = all_pairs(corpus / "bitext"), all_pairs(corpus / "dev")
    assert [source["package"] for source in facts["sources"]] == [s.distribution for s in SOME]
    for name, pairs_of in (("train_pairs", bitext), ("dev_pairs", dev)):
        total = sum(map(len, pairs_of.values()))
        assert facts[name] == total == sum(source[name] for source in facts["sources"])
        for language, counts in facts["languages"].items():
            assert counts[name] == len(pairs_of.get(language, []))
    cldr = facts["sources"][-1]
    assert cldr["dev_pairs"] == 0 and "Unicode-3.0" in cldr["licence"]
    assert facts["files_in_other_languages"] > 0


def test_two_runs_write_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_demo_corpus(tmp_path / name, sources=SMALL)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) > 50
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    # No time in the gzip header.
    assert (tmp_path / "a/bitext/de.tsv.gz").read_bytes()[4:8] == bytes(4)


def test_the_command(tmp_path, monkeypatch, capsys):
    """It refuses a folder in use, overwrites it if told, and prints a table."""
    missing = Source("no-such", "no_such_package", MESSAGES, "*.mo")
    with pytest.raises(InputError, match="no-such"):
        write_demo_corpus(tmp_path / "out", sources=[*SMALL, missing])
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(write, "write_demo_corpus", partial(write_demo_corpus, sources=SMALL))
    out = tmp_path / "demo"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert cli.main(["corpus", "demo", str(out)]) == cli.EXIT_INPUT
    assert "not empty" in capsys.readouterr().err
    assert (out / "mine.txt").exists()
    assert cli.main(["corpus", "demo", str(out), "--overwrite"]) == cli.EXIT_DONE
    assert not (out / "mine.txt").exists() and (out / write.SOURCES_FILE).exists()
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:2] == ["package", "version"]
    assert [line.split()[0] for line in table[1:]] == ["django-filter", "django-formtools", "total"]
    assert "BSD" in table[1]
    with gzip.open(out / "bitext" / "de.tsv.gz", "rt", encoding="utf-8") as stream:
        assert stream.readline().count("\t") == 1
