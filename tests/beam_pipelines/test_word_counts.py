"""Word counts against a hand computation, and the vocabulary command."""

import json
import shutil

import pytest
from text_files import write_lines

from beam_pipelines import build_vocab, word_counts
from beam_pipelines.word_counts import Settings, WordCounter
from labse_tf.cli.main import main
from labse_tf.errors import InputError
from vocab import wordpiece_file
from vocab.basic_tokenizer import split_words


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "in"
    write_lines(folder / "de.tsv", ["the cat\tdie Katze", "the dog\tder Hund"])
    write_lines(folder / "de.txt.gz", ["die die die cat"])
    write_lines(folder / "sw.tsv", [f"the cat\tpaka {'w' * 51}"])
    return folder


def test_counts_with_and_without_smoothing(corpus, monkeypatch):
    counted = word_counts.count([str(corpus)], Settings(1.0))
    # Two of "cat" are English, one is German.
    once = dict.fromkeys(("Hund", "Katze", "der", "dog", "paka"), 1)
    assert counted.words == {"die": 4, "cat": 3, "the": 3, **once}
    assert list(counted.words)[:3] == ["die", "cat", "the"]
    assert counted.tokens == {"en": 6, "de": 8, "sw": 1}
    assert counted.too_long == {"sw": 1}
    # Many small bundles count the same.
    monkeypatch.setattr(word_counts, "_MAX_WORDS_HELD", 0)
    assert word_counts.count([str(corpus)], Settings(1.0)) == counted
    # All languages alike: 15 tokens, so each language gets 5. English words weigh 5/6, German ones
    # 5/8, Swahili ones 5. So "the" has 3 * 5/6 = 2.5, rounded to even, "die" 4 * 5/8 = 2.5, "cat"
    # 2 * 5/6 + 1 * 5/8 = 2.29.
    counted = word_counts.count([str(corpus)], Settings(0.0))
    once = dict.fromkeys(("Hund", "Katze", "der", "dog"), 1)
    assert counted.words == {"paka": 5, "the": 2, "die": 2, "cat": 2, **once}


def test_minimum_count_and_length_and_shards_read_back(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(word_counts, "_MIN_SHARDS", 3)
    folder, settings = tmp_path / "counts", Settings(1.0, min_word_count=3, max_word_length=3)
    counted = word_counts.count([str(corpus)], settings, folder=folder)
    assert list(counted.words.items()) == [("die", 4), ("cat", 3), ("the", 3)]
    assert counted.too_long == {"de": 2, "sw": 2}
    shards = {*folder.glob("words-?????-of-00003.tsv")}
    lines = [path.read_text("utf-8").splitlines() for path in shards]
    assert all(found == sorted(found) != [] for found in lines)
    assert sorted(sum(lines, [])) == ["cat\t3", "die\t4", "the\t3"]
    others = {path.name for path in {*folder.iterdir()} - shards}
    assert others == {"totals.json", "settings.json"}
    monkeypatch.setattr(word_counts, "_MAX_WORDS", 2)
    again = word_counts.count([str(corpus)], settings, folder=folder)
    assert list(again.words.items()) == [("die", 4), ("cat", 3)]
    assert again.distinct == 3


def test_vocab_build_keeps_counts_and_uses_them_again(corpus, tmp_path, caplog, capfd):
    out = tmp_path / "vocab.txt"
    args = ["vocab", "build", str(corpus), "--counts", str(tmp_path / "counts")]
    args += ["--vocab-size", "200", "--out"]
    assert main([*args, str(out)]) == 0
    tokens = wordpiece_file.read(out)
    assert tokens[: len(wordpiece_file.RESERVED_TOKENS)] == list(wordpiece_file.RESERVED_TOKENS)
    assert len(tokens) <= 200
    assert set(tokens) >= {"die", "the", "K", "##K"}
    assert "counting words" in caplog.text
    assert "8 distinct words of 15 in 3 languages" in caplog.text
    assert f"{out}: {len(tokens)} tokens" in caplog.text
    assert main([*args, str(out)]) == 2
    assert "--overwrite" in capfd.readouterr().err
    caplog.clear()
    assert main([*args, str(tmp_path / "again")]) == 0
    assert "counting words" not in caplog.text
    assert out.read_bytes() == (tmp_path / "again").read_bytes()


def test_what_is_refused(corpus, tmp_path, capfd):
    command = ["vocab", "build", str(corpus), "--counts", f"{tmp_path}/counts"]
    for options, message in (
        (["--vocab-size", "100"], "--vocab-size 100 is too small"),
        (["--max-unique-chars", "300000"], "is too small"),
        (["--smoothing-exponent", "1.5"], "--smoothing-exponent is 1.5"),
        (["--min-word-count", "99999"], "no words are left"),
        ([], "fr.txt:1: invalid UTF-8"),
    ):
        if "UTF-8" in message:
            shutil.rmtree(tmp_path / "counts")
            (corpus / "fr.txt").write_bytes(b"caf\xe9\n")
        assert main([*command, "--out", f"{tmp_path}/vocab.txt", *options]) == 2
        assert message in capfd.readouterr().err.splitlines()[-1]
        assert not (tmp_path / "vocab.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_vocabulary_is_never_larger_than_asked_for(tmp_path):
    """Words of equal counts leave the learner no threshold that gives just the size."""
    syllables = ["ba", "ko", "mi", "tu", "re", "so"]
    words = [a + b + c for a in syllables for b in syllables for c in syllables]
    (tmp_path / "sw.txt").write_text("".join(f"{word} {word} {word}\n" for word in words))
    counts = str(tmp_path / "counts")
    for vocab_size in (140, 145, 160, 400, 2000):
        tokens = build_vocab.run(
            [str(tmp_path / "sw.txt")],
            str(tmp_path / f"vocab-{vocab_size}"),
            vocab_size=vocab_size,
            max_unique_chars=12,
            counts=counts,
        )
        assert min(vocab_size, 104 + 2 * 12) * 0.95 <= len(tokens) <= vocab_size


@pytest.mark.parametrize("held", [0, 7, 10**9])
def test_counter_splits_as_split_words(multilingual_sentences, monkeypatch, held):
    monkeypatch.setattr("beam_pipelines.word_counts._CHARACTERS_HELD", held)
    # Letters to TF Text; but pieces with them would be read as others from the vocabulary.
    odd = "a  b\tc\u00a0d c\u2028d e\u0085f"
    texts = [*multilingual_sentences, "", " ", odd, *multilingual_sentences[:3]]
    counter = WordCounter()
    counter.add("xx", texts)
    counter.add("yy", texts[:1])
    words = [word for text in texts for word in split_words(" ".join(text.split()))]
    assert counter.take() == {
        "xx": {word: words.count(word) for word in words},
        "yy": dict.fromkeys(split_words(texts[0]), 1),
    }
    assert len(counter) == 0
    assert counter.take() == {}


def test_plan_of_shards(monkeypatch):
    monkeypatch.setattr(word_counts, "text_bytes", lambda size: size)
    sizes = (1, 99 * 64_000_000 + 1, 10**15)
    assert [word_counts.plan_word_shards([size]) for size in sizes] == [32, 100, 4096]


def test_kept_counts_of_anything_else_are_refused(corpus, tmp_path):
    folder, mine = tmp_path / "counts", tmp_path / "mine"
    word_counts.count([str(corpus)], Settings(1.0), folder=folder)
    before = sorted(folder.iterdir())
    mine.mkdir()
    (mine / "letter").write_text("Dear")

    def refused(place, message, settings=Settings(1.0)):  # noqa: B008
        with pytest.raises(InputError, match=message) as caught:
            word_counts.count([str(corpus)], settings, folder=place)
        assert caught.value.path.startswith(str(place))

    refused(folder, r"settings \(smoothing_exponent\)", Settings(0.3))
    refused(mine, "not empty")
    with open(corpus / "sw.tsv", "a") as file:
        file.write("a dog\tmbwa\n")
    refused(folder, r"settings \(files\)")
    assert sorted(folder.iterdir()) == before
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    (folder / "settings.json").write_text(json.dumps({**settings, "words_version": 1}))
    refused(folder, r"settings \(words_version, files\)")
    (folder / "settings.json").write_text("{")
    refused(folder, "damaged")
