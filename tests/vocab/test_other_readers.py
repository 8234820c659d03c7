"""A vocabulary file gives every id the same token here, in TF Text and in Hugging Face."""

from __future__ import annotations

import itertools
import lzma

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from repository import SHARED
from tokenizers import BertWordPieceTokenizer
from tokenizers.models import WordPiece as HuggingFaceWordPiece

from beam_pipelines.counting.word_counter import WordCounter
from labse_tf.cli.main import main
from labse_tf.demo.corpus.sources import SOURCES, list_files, read_raw_pairs
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file
from vocab.basic_tokenizer import has_other_space
from vocab.learner import learn

# All that was there when this was written; a folder that is missing is told.
CORPORA = (
    *("bucc2018", "libreoffice", "multi30k", "neighbours", "nli_train", "nllb_seed", "ntrex128"),
    *("pawsx", "quran", "senteval", "sentiment", "sick_multi", "sts", "tatoeba", "tatoeba_train"),
    *("tatoeba_train_rest", "udhr", "xnli"),
)
SPACES = "\u00a0\u202f\u3000\u2009\u2028"
# What readers in use do with a line, TF Text's and Hugging Face's aside.
READERS = {
    "transformers": lambda path: [line.rstrip("\n") for line in path.open(encoding="utf-8")],
    "the original BERT": lambda path: [line.strip() for line in path.open(encoding="utf-8")],
    "splitlines": lambda path: path.read_text("utf-8").splitlines(),
}


def assert_read_alike(path):
    """Compares all ids, those of `tokenizers` by its token of each."""
    tokens = wordpiece_file.read(path)
    numbers = list(range(len(tokens)))
    table = tf_text.BertTokenizer(str(path))._wordpiece_tokenizer._vocab_lookup_table
    assert int(table.size()) == len(tokens) + 1  # One for what is unknown.
    assert table.lookup(tf.constant(tokens)).numpy().tolist() == numbers
    assert HuggingFaceWordPiece.read_file(str(path)) == dict(zip(tokens, numbers, strict=True))
    reader = BertWordPieceTokenizer(str(path), lowercase=False)
    assert reader.get_vocab_size() == len(tokens)
    assert [reader.id_to_token(number) for number in numbers] == tokens
    for name, read in READERS.items():
        assert read(path) == tokens, name
    return tokens


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Names of things in about 100 languages, joined by spaces of many kinds, a file a language."""
    folder = tmp_path_factory.mktemp("names")
    source = next(source for source in SOURCES if source.distribution == "babel")
    for locale, code in list_files(source):
        found = [pair.foreign for pair in itertools.islice(read_raw_pairs(locale), 100)]
        # Each kind of space after each name twice, before a mark too, as in French.
        lines = [f"{name}{space}! {name}{space}{name}" for name in found for space in SPACES]
        (folder / f"{code}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def built(names, tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "vocab.txt"
    size = ["--vocab-size", "12000", "--max-unique-chars", "4000"]
    assert main(["vocab", "build", str(names), "--out", str(out), *size]) == 0
    return out


def test_what_vocab_build_writes(built):
    tokens = assert_read_alike(built)
    assert len(tokens) > 8_000
    assert not any(map(has_other_space, tokens))


def test_text_with_such_spaces_has_the_tokens_of_hugging_face(names, built):
    """Whose spaces they always were. No word is lost to [UNK] for them."""
    texts = [
        line
        for file in sorted(names.glob("*.txt"))
        for line in file.read_text("utf-8").split("\n")[: 5 * len(SPACES)]
        # A joiner, a format character, divides words in TF Text and vanishes in Hugging Face.
        if not set("\u200b\u200c\u200d\u200e\u200f\u061c") & set(line)
    ]
    ours = WordPieceTokenizer(built, max_bytes_per_word=10_000)(tf.constant(texts)).to_list()
    theirs = BertWordPieceTokenizer(str(built), lowercase=False, strip_accents=False)
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert sum(map(len, ours)) > 10_000
    assert ours == expected


def read_corpus(folder):
    """Yields the first lines of each file; of its first 5,000 those with another space too."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix != ".md"]
    first = min(1000, max(200, 20_000 // len(files)))
    for file in files:
        opened = lzma.open if file.suffix == ".xz" else open
        with opened(file, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(itertools.islice(lines, 5000)):
                if number < first or has_other_space(line):
                    yield line.rstrip("\n")


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("corpus", CORPORA)
def test_vocabularies_learned_from_real_corpora(corpus, tmp_path):
    folder = SHARED / corpus
    if not folder.is_dir():
        pytest.skip(f"needs {corpus} in ../shared/data")
    counter = WordCounter()
    counter.add("xx", list(read_corpus(folder)))
    # Rare characters too: most of those at fault are.
    tokens = learn(
        counter.take()["xx"],
        40_000,
        wordpiece_file.RESERVED_TOKENS,
        lower_thresh=1,
        max_unique_chars=10_000,
    )
    wordpiece_file.write(tmp_path / "vocab.txt", tokens)
    assert len(assert_read_alike(tmp_path / "vocab.txt")) > 5_000
