"""Batches of pairs: a function of seed and step, buckets that hold them, no token lost."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.data import streams, texts
from labse_tf.data.pairs import pair_batches
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.textio import read_pairs

PADDING, START, END = 0, 101, 102


@pytest.fixture(params=["streamed", "in memory"])
def tiny_config(tiny_config, request):
    """The same must hold whether pairs are read as they come or once."""
    return configured(tiny_config, cache_tokens=request.param == "in memory")


def batches_of(config, tokenizer, step=0):
    settings = {"languages": config.languages, "seed": config.seed}
    return pair_batches(config.train, tokenizer, **settings)(step)


def configured(config, **changes):
    seed = changes.pop("seed", config.seed)
    languages = changes.pop("languages", config.languages)
    train = dataclasses.replace(config.train, **changes)
    return dataclasses.replace(config, seed=seed, languages=languages, train=train)


def take(dataset, count):
    """The sides of batches."""
    return [
        tuple(
            {name: value.numpy() for name, value in batch[side].items()}
            for side in ("source", "target")
        )
        for batch in dataset.take(count)
    ]


def assert_equal(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, left, right)


def differ(one, other):
    def ids(batches):
        return [batch[0]["input_word_ids"].tolist() for batch in batches]

    return ids(one) != ids(other)


@pytest.mark.slow
def test_moses_pairs_and_loose_tfrecords_are_read_as_tsv_is(
    tmp_path, bitext_dir, tiny_config, tokenizer
):
    pairs = [pair for _, *pair in read_pairs(bitext_dir / "th.tsv")]
    for folder in ("tsv", "moses", "tfrecord"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tsv" / "th.tsv").write_bytes((bitext_dir / "th.tsv").read_bytes())
    for side, code in enumerate(("en", "th")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / "moses" / f"OPUS.en-th.{code}").write_text(text, "utf-8")
    with tf.io.TFRecordWriter(str(tmp_path / "tfrecord" / "th.tfrecord")) as writer:
        for pair in pairs:
            example = tf.train.Example()
            for name, text in zip(("src_raw", "tgt_raw"), pair, strict=True):
                example.features.feature[name].bytes_list.value.append(text.encode())
            writer.write(example.SerializeToString())
    made = [
        take(
            batches_of(configured(tiny_config, bitext=[str(folder)], languages=["th"]), tokenizer),
            6,
        )
        for folder in sorted(tmp_path.iterdir())
    ]
    assert_equal(made[0], made[2])
    assert_equal(made[1], made[2])


def test_a_tfrecord_without_the_feature(tmp_path, tiny_config, tokenizer):
    with tf.io.TFRecordWriter(str(tmp_path / "th.tfrecord")) as writer:
        writer.write(tf.train.Example().SerializeToString())
    config = configured(tiny_config, bitext=[str(tmp_path)], languages=["th"])
    with pytest.raises(InputError, match="no feature 'src_raw'"), texts.input_errors():
        take(batches_of(config, tokenizer), 1)


def test_hard_negatives_of_a_corpus_without_any(tiny_config, tokenizer):
    with pytest.raises(InputError, match="no file has a third column"):
        batches_of(configured(tiny_config, hard_negatives=3), tokenizer)


def test_a_small_corpus_has_no_pair_twice_in_a_batch(tmp_path, tiny_config, tokenizer):
    """40 pairs of one length, 8 a batch: 16 batches, sorted, would bring copies together."""
    lines = "".join(f"{'a' * 5}{n:02d}\t{'b' * 5}{n:02d}\n" for n in range(40))
    (tmp_path / "th.tsv").write_text(lines, "utf-8")
    config = configured(tiny_config, bitext=[str(tmp_path)], languages=["th"])
    for batch in batches_of(config, tokenizer).take(15):
        assert len(np.unique(batch["keys"][:, 0])) == 8


def test_another_seed_gives_another_order(tiny_config, tokenizer):
    one, other = (
        take(batches_of(configured(tiny_config, seed=seed), tokenizer), 10) for seed in (7, 8)
    )
    assert differ(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("buckets, skips", [([16, 24, 32], (0, 1, 40)), ([32], (19,))])
def test_skipping_is_leaving_out(tiny_config, tokenizer, buckets, skips):
    """Beyond 12 batches the two languages (96 pairs, 8 a batch) come round again."""
    config = configured(tiny_config, bucket_lengths=buckets, languages=["de", "th"])
    whole = take(batches_of(config, tokenizer), 44)
    for skip in skips:
        found = take(batches_of(config, tokenizer, skip), 4)
        assert_equal(found, whole[skip : skip + 4])


def test_a_segment_is_read_anew_and_from_any_of_its_steps(tiny_config, tokenizer, monkeypatch):
    monkeypatch.setattr(streams, "SEGMENT", 4)
    config = configured(tiny_config)
    first, second = (take(batches_of(config, tokenizer, step), 4) for step in (0, 4))
    assert differ(first, second)
    assert_equal(take(batches_of(config, tokenizer, 6), 2), second[2:])


def test_batches_are_packed_and_padded_to_their_bucket(tiny_config, tokenizer):
    buckets = [12, 14, 15, 16, 17, 18, 20, 24, 32]
    config = configured(tiny_config, bucket_lengths=buckets)
    seen = set()
    for pair in take(batches_of(config, tokenizer), 40):
        longest = 0
        for side in pair:
            ids, mask = side["input_word_ids"], side["input_mask"]
            assert all(value.dtype == np.int32 for value in side.values())
            assert ids.shape == mask.shape == side["input_type_ids"].shape
            assert ids.shape[0] == 8
            lengths = mask.sum(axis=1)
            np.testing.assert_array_equal(mask, np.arange(ids.shape[1]) < lengths[:, None])
            assert (ids[:, 0] == START).all()
            assert (ids[np.arange(8), lengths - 1] == END).all()
            assert (ids[mask == 0] == PADDING).all()
            assert (side["input_type_ids"] == 0).all()
            longest = max(longest, lengths.max())
        # Both sides have one length: the smallest bucket for the longer one.
        assert pair[0]["input_mask"].shape == pair[1]["input_mask"].shape
        length = pair[0]["input_mask"].shape[1]
        assert length == next(bucket for bucket in buckets if bucket >= longest)
        seen.add(length)
    assert len(seen) >= 3


def tokens_of(side):
    return [
        tuple(ids[mask == 1])
        for ids, mask in zip(side["input_word_ids"], side["input_mask"], strict=True)
    ]


def test_keys_are_equal_where_texts_are(tiny_config, tokenizer):
    """Of all texts that differ in their tokens none has another's key."""
    for side, place in (("source", 0), ("target", 1)):
        texts_by_key, keys_by_text = {}, {}
        for batch in batches_of(tiny_config, tokenizer).take(40):
            tokens = tokens_of({name: value.numpy() for name, value in batch[side].items()})
            assert batch["keys"].dtype == tf.int32
            for key, text in zip(batch["keys"].numpy()[:, place], tokens, strict=True):
                texts_by_key.setdefault(int(key), set()).add(text)
                keys_by_text.setdefault(text, set()).add(int(key))
        assert len(keys_by_text) > 20
        assert all(len(texts_) == 1 for texts_ in texts_by_key.values())
        assert all(len(keys) == 1 for keys in keys_by_text.values())


def test_no_pair_is_torn_and_no_token_lost(tiny_config, tokenizer, bitext_dir):
    """The corpus of one language has 48 pairs: one window of 16 batches of 3."""
    config = configured(tiny_config, bucket_lengths=[16, 32, 64], batch_size=3, languages=["th"])
    found = Counter()
    for source, target in take(batches_of(config, tokenizer), 16):
        found.update(zip(tokens_of(source), tokens_of(target), strict=True))
    rows = [pair for _, *pair in read_pairs(bitext_dir / "th.tsv")]
    sides = [
        [(START, *ids, END) for ids in tokenizer(tf.constant(side)).to_list()]
        for side in zip(*rows, strict=True)
    ]
    assert found == Counter(zip(*sides, strict=True))


def test_what_is_too_long_for_the_last_bucket_is_cut_to_it(tiny_config, tokenizer):
    config = configured(tiny_config, bucket_lengths=[6, 8])
    lengths = set()
    for pair in take(batches_of(config, tokenizer), 10):
        for side in pair:
            lengths.add(side["input_word_ids"].shape[1])
            for tokens in tokens_of(side):
                assert tokens[0] == START and tokens[-1] == END
                assert len(tokens) <= 8
    assert lengths == {8}


@pytest.mark.slow
def test_like_lengths_come_together(tiny_config, tokenizer):
    """Less padding than in batches that are not sorted."""

    def padding(buckets):
        config = configured(tiny_config, bucket_lengths=buckets)
        masks = [
            side["input_mask"] for pair in take(batches_of(config, tokenizer), 48) for side in pair
        ]
        return sum((mask == 0).sum() for mask in masks) / sum(mask.size for mask in masks)

    assert padding([12, 16, 20, 24, 32]) < 0.7 * padding([32])


def test_languages_can_be_chosen(tiny_config, tokenizer):
    config = configured(tiny_config, languages=["th", "ja"])
    thai_and_japanese = set()
    for _, target in take(batches_of(config, tokenizer), 16):
        thai_and_japanese.update(target["input_word_ids"].ravel().tolist())
    texts_ = [tokenizer.tokens[token] for token in thai_and_japanese if token > 103]
    blocks = {ord(text.removeprefix("##")[0]) >> 8 for text in texts_}
    assert blocks <= {0x0E, 0x30} | set(range(0x4E, 0xA0))
    assert 0x0E in blocks and 0x30 in blocks


def test_the_mix_follows_the_weights():
    names = ("de", "fr", "th")
    named = {name: tf.data.Dataset.from_tensors(name).repeat() for name in names}
    mixed = streams.mix(named, {"de": 0.7, "fr": 0.2, "th": 0.1}, seed=3)
    counts = Counter(text.decode() for text in mixed.take(5000).as_numpy_iterator())
    for name, share in (("de", 0.7), ("fr", 0.2), ("th", 0.1)):
        assert abs(counts[name] - 5000 * share) < 5 * np.sqrt(5000 * share * (1 - share))


@pytest.mark.parametrize(
    "data, line, problem",
    [
        (b"Hello\tHallo\nalone\n", 2, "one column"),
        (b"Hello\tHallo\n\xff\tx\n", 2, "invalid UTF-8"),
        (b"", None, "the file is empty"),
    ],
)
def test_broken_data_are_named_while_reading(tmp_path, tiny_config, tokenizer, data, line, problem):
    (tmp_path / "de.tsv").write_bytes(data)
    config = configured(tiny_config, bitext=[str(tmp_path)])
    with pytest.raises(InputError) as caught, texts.input_errors():
        next(iter(batches_of(config, tokenizer)))
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "de.tsv"), line)
    assert problem in caught.value.problem


def test_a_damaged_shard_is_named_and_no_failure_of_before(tmp_path, tiny_config, tokenizer):
    """A broken text file first: what it left behind must not be told for the shard."""
    text, shards = tmp_path / "text", tmp_path / "bitext" / "de"
    for folder in (text, shards):
        folder.mkdir(parents=True)
    (text / "de.tsv").write_bytes(b"alone\n")
    (shards / "a.tfrecord").write_bytes(b"this is no record file, but long enough for a header")
    with pytest.raises(tf.errors.OpError):
        list(texts.records(*find_corpus_files([str(text)])))
    config = configured(tiny_config, bitext=[str(tmp_path / "bitext")])
    with pytest.raises(InputError) as caught, texts.input_errors():
        next(iter(batches_of(config, tokenizer)))
    assert "a TFRecord shard is damaged" in caught.value.problem


@pytest.mark.parametrize("share", [0.25, 0.8])
def test_old_languages_are_replayed(tmp_path, tiny_config, tokenizer, bitext_dir, share):
    """Thai is new; Japanese takes its share, and the Thai pairs of the old corpus none."""
    new = tmp_path / "new"
    new.mkdir()
    (_, _, thai), *_ = pairs = list(read_pairs(bitext_dir / "th.tsv"))
    lines = [f"{english}\t{thai}\n" for _, english, _ in pairs]
    (new / "th.tsv").write_text("".join(lines), "utf-8")
    replay = {"replay": [str(bitext_dir)], "replay_share": share}
    config = configured(tiny_config, bitext=[str(new)], languages=["ja", "th"], seed=1, **replay)
    batches = batches_of(config, tokenizer)
    rows = [
        [tokenizer.tokens[token] for token in row if token > 103]
        for batch in batches.take(60)
        for row in batch["target"]["input_word_ids"].numpy()
    ]
    found = [row for row in rows if any("\u0e00" <= piece[-1] < "\u0e80" for piece in row)]
    assert len(found) / len(rows) == pytest.approx(1 - share, abs=0.08)
    assert len(set(map(tuple, found))) == 1
