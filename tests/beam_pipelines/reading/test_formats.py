"""Our Example and TFRecord code against TensorFlow's, and damaged shards."""

import gzip
import io

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import (
    Pair,
    Sentence,
    build_record,
    decode_example,
    encode_example,
    encode_record,
    read_records,
    write_records,
)
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
GOOD = encode_record(Pair("Hello", "Hallo", "de"))


def framed(records):
    stream = io.BytesIO()
    write_records(stream, records)
    return stream.getvalue()


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=60), max_size=30), TEXTS, TEXTS)
def test_round_trips(records, source, target):
    assert list(read_records(io.BytesIO(framed(records)))) == records
    for record in (Pair(source.strip(), target.strip(), "de"), Sentence(source.strip(), "zh")):
        features = decode_example(encode_record(record))
        assert build_record(type(record), features, None) == record


def test_tensorflow_reads_and_writes_the_same_bytes(tmp_path):
    import tensorflow as tf

    features = {"src_raw": "Hello, wörld", "tgt_raw": "你好", "language_code": "zh"}
    data = encode_example(features)
    theirs = tf.train.Example.FromString(data)
    values = {name: one.bytes_list.value[0] for name, one in theirs.features.feature.items()}
    assert {name: value.decode() for name, value in values.items()} == features
    assert decode_example(theirs.SerializeToString()) == features
    assert theirs.SerializeToString(deterministic=True) == data

    records = [data, b"", b"x" * 300]
    (tmp_path / "ours.gz").write_bytes(gzip.compress(framed(records)))
    read = tf.data.TFRecordDataset(str(tmp_path / "ours.gz"), compression_type="GZIP")
    assert [record.numpy() for record in read] == records
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in records:
            writer.write(record)
    assert (tmp_path / "theirs").read_bytes() == framed(records)
    # In Python, the checksum of some megabytes takes half a minute.
    assert google_crc32c.implementation == "c"


def shard(folder, examples, edit=bytes):
    path = folder / "bitext" / "de" / "part-00000-of-00001.tfrecord.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(edit(gzip.compress(framed(examples))))
    return CorpusFile(str(path), "de", "bitext", "shard")


def flipped(place):
    content = bytearray(framed([GOOD]))
    content[place] ^= 1
    return lambda _: gzip.compress(content)


@pytest.mark.parametrize(
    ("examples", "edit", "message"),
    [
        ([GOOD] * 3, lambda content: content[:-12], "cannot be read"),
        ([GOOD], lambda content: b"no gzip at all", "cannot be read"),
        ([GOOD, b"\xff\xff"], bytes, "record 2: not a tf.train.Example"),
        ([GOOD, encode_record(Sentence("Hallo", "de"))], bytes, "record 2: no feature 'src_raw'"),
        ([GOOD, encode_record(Pair("Hi", "Salut", "fr"))], bytes, "record 2 is of language 'fr'"),
        ([GOOD], flipped(3), "record 1 is cut off"),
        ([GOOD], flipped(7), "record 1 is damaged"),
        ([GOOD], flipped(20), "record 1 has a wrong checksum"),
    ],
)
def test_damaged_shards(tmp_path, examples, edit, message):
    file = shard(tmp_path, examples, edit)
    with pytest.raises(InputError, match=message) as caught:
        list(read_file(file))
    assert caught.value.path == file.path


def test_shard_of_another_writer(tmp_path):
    """Other writers may leave out language_code, or name a variant of the language."""
    examples = [
        encode_example({"src_raw": "Yes", "tgt_raw": "Ja"}),
        encode_example({"src_raw": "No", "tgt_raw": "Nein", "language_code": "de_AT", "x": "y"}),
    ]
    pairs = [Pair("Yes", "Ja", "de"), Pair("No", "Nein", "de")]
    assert list(read_file(shard(tmp_path, examples))) == pairs
