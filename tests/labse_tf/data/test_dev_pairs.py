"""Dev pairs: which ones a pool takes, and that none of them is impossible to find."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tiny_text import FOREIGN, sentences_of

from labse_tf.data.dev_pairs import distinct, read_dev_pairs
from labse_tf.errors import InputError


def pools_of(config):
    return read_dev_pairs(config.train, config.languages)


def configured(config, *folders, languages=(), size=500):
    train = dataclasses.replace(config.train, dev=[str(path) for path in folders], dev_size=size)
    return dataclasses.replace(config, languages=list(languages), train=train)


def write(folder, language, pairs):
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (folder / f"{language}.tsv").write_text(lines, "utf-8")


def test_the_first_pairs_of_each_language(tiny_config, bitext_dir):
    pools = pools_of(configured(tiny_config, bitext_dir, size=9))
    assert list(pools) == sorted(FOREIGN)
    for language, pool in pools.items():
        expected = zip(sentences_of("en")[:9], sentences_of(language)[:9], strict=True)
        assert [tuple(side.decode() for side in pair) for pair in pool] == list(expected)


def test_pairs_with_a_side_seen_before_are_passed_over():
    pairs = [
        (b"yes", "так".encode()),
        (b"yes", "да".encode()),  # Two translations of one sentence: either would be right.
        (b"indeed", "так".encode()),
        ("はい".encode(), b"yes"),  # The sides are apart.
        (b"indeed", "да".encode()),  # Of what was passed over nothing counts.
        (b"no", "нет".encode()),
    ]
    assert distinct(pairs, 3) == [pairs[0], pairs[3], pairs[4]]
    assert distinct(pairs, 9) == [pairs[0], *pairs[3:]]


letters = st.sampled_from([b"a", b"b", b"c", b"d", "ж".encode(), "あ".encode()])


@given(st.lists(st.tuples(letters, letters)), st.integers(2, 5))
def test_no_text_is_twice_on_a_side(pairs, size):
    pool = distinct(iter(pairs), size)
    assert len(pool) <= size
    for side in zip(*pool, strict=True):
        assert len(set(side)) == len(side)
    assert pool == distinct(pool, size)
    if len(pool) < size:  # Then nothing was left that could have been taken.
        sources, targets = (set(side) for side in zip(*pool, strict=True)) if pool else ((), ())
        assert all(source in sources or target in targets for source, target in pairs)


def test_duplicates_count_over_the_files_of_a_language(tiny_config, tmp_path):
    write(tmp_path / "one", "de", [("cat", "Katze"), ("dog", "Hund")])
    write(tmp_path / "two", "de", [("cat", "Kater"), ("bird", "Vogel")])
    config = configured(tiny_config, tmp_path / "one", tmp_path / "two")
    expected = [(b"cat", b"Katze"), (b"dog", b"Hund"), (b"bird", b"Vogel")]
    assert pools_of(config) == {"de": expected}


def test_clean_shards(tiny_config, tmp_path):
    shard = tmp_path / "bitext" / "th" / "part-00000-of-00001.tfrecord.gz"
    shard.parent.mkdir(parents=True)
    pairs = list(zip(sentences_of("en"), sentences_of("th"), strict=True))[:3]
    with tf.io.TFRecordWriter(str(shard), tf.io.TFRecordOptions("GZIP")) as writer:
        for source, target in pairs:
            example = tf.train.Example()
            for name, text in (("src_raw", source), ("tgt_raw", target)):
                example.features.feature[name].bytes_list.value.append(text.encode())
            writer.write(example.SerializeToString())
    expected = [(source.encode(), target.encode()) for source, target in pairs]
    assert pools_of(configured(tiny_config, tmp_path)) == {"th": expected}


def test_a_language_with_one_pair_says_nothing(tiny_config, tmp_path, caplog):
    write(tmp_path / "dev", "de", [("cat", "Katze"), ("cat", "Kater")])
    config = configured(tiny_config, tmp_path / "dev")
    with pytest.raises(InputError, match="no language with two different pairs"):
        pools_of(config)
    write(tmp_path / "dev", "fr", [("cat", "chat"), ("dog", "chien")])
    with caplog.at_level("INFO", "labse"):
        assert list(pools_of(config)) == ["fr"]
    assert "fewer than two pairs in de" in caplog.text


def test_only_the_languages_asked_for(tiny_config, bitext_dir):
    config = configured(tiny_config, bitext_dir, languages=["th", "ja", "en"])
    assert list(pools_of(config)) == ["ja", "th"]
    with pytest.raises(InputError, match="'train.dev' has no text in sw"):
        pools_of(configured(tiny_config, bitext_dir, languages=["sw"]))


def test_a_broken_file_is_named(tiny_config, tmp_path):
    write(tmp_path / "dev", "de", [("cat", "Katze"), ("dog", "")])
    with pytest.raises(InputError, match=r"de\.tsv:2: the target column is empty"):
        pools_of(configured(tiny_config, tmp_path / "dev"))
