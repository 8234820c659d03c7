"""The demo corpus as written: files, invariants, the same bytes every time, the command."""

import json
from functools import partial
from pathlib import Path

import pytest

from labse_tf.cli import main as cli
from labse_tf.demo.corpus import sources, write
from labse_tf.demo.corpus.sources import MESSAGES, SOURCES, Source
from labse_tf.demo.corpus.write import MAX_DEV_PAIRS, MIN_WORDS, sentence_key, write_demo_corpus
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT, MONOLINGUAL, find_corpus_files
from labse_tf.files.textio import read_lines, read_pairs

SOME = [s for s in SOURCES if s.distribution in ("djangorestframework", "babel")]


@pytest.fixture(scope="module", autouse=True)
def few_locales():
    """All locales of CLDR take half a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources.localedata, "locale_identifiers", lambda: ["de", "ja", "sw"])
        yield


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


def test_texts_and_what_is_told_of_them(corpus):
    bitext, dev = all_pairs(corpus / "bitext"), all_pairs(corpus / "dev")
    assert len(bitext) > 30 and "en" not in bitext and len(dev["de"]) > 10
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

    facts = json.loads((corpus / write.SOURCES_FILE).read_text(encoding="utf-8"))
    assert [source["package"] for source in facts["sources"]] == [s.distribution for s in SOME]
    for name, pairs_of in (("train_pairs", bitext), ("dev_pairs", dev)):
        total = sum(map(len, pairs_of.values()))
        assert facts[name] == total == sum(source[name] for source in facts["sources"])
        for language, counts in facts["languages"].items():
            assert counts[name] == len(pairs_of.get(language, []))
    cldr = facts["sources"][-1]
    assert cldr["dev_pairs"] == 0 and "Unicode-3.0" in cldr["licence"]
    assert facts["files_in_other_languages"] > 0


def test_the_command(corpus, tmp_path, monkeypatch, capsys):
    """It refuses a folder in use, overwrites it if told, and prints a table; bytes are the same."""
    missing = Source("no-such", "no_such_package", MESSAGES, "*.mo")
    with pytest.raises(InputError, match="no-such"):
        write_demo_corpus(tmp_path / "out", sources=[*SOME, missing])
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(write, "write_demo_corpus", partial(write_demo_corpus, sources=SOME))
    out = tmp_path / "demo"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert cli.main(["corpus", "demo", str(out)]) == cli.EXIT_INPUT
    assert "not empty" in capsys.readouterr().err and (out / "mine.txt").exists()
    assert cli.main(["corpus", "demo", str(out), "--overwrite"]) == cli.EXIT_DONE
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:2] == ["package", "version"] and "BSD" in table[1]
    assert [line.split()[0] for line in table[1:]] == [*(s.distribution for s in SOME), "total"]
    old, new = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (corpus, out)
    )
    assert old == new and len(new) > 50
    # No time in the gzip header.
    assert (out / "bitext/de.tsv.gz").read_bytes()[4:8] == bytes(4)
