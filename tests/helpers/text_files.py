"""Files of lines, plain or compressed, of rows, and of records."""

from __future__ import annotations

import gzip
import lzma


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def write_records(path, rows, names):
    """TFRecord of an example for each row, its texts by these names."""
    import tensorflow as tf

    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), "GZIP" if path.suffix == ".gz" else "") as writer:
        for row in rows:
            example = tf.train.Example()
            for name, text in zip(names, row, strict=True):
                example.features.feature[name].bytes_list.value.append(text.encode())
            writer.write(example.SerializeToString())


def read_rows(path):
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").split("\n")[:-1]]


def content_of(folder):
    """{path below the folder: bytes} of all its files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def read_corpus(path, kind=None):
    """The records of all corpus files at a path."""
    from beam_pipelines.reading.readers import read_file
    from labse_tf.files.corpus_files import find_corpus_files

    files = find_corpus_files([str(path)], kind=kind)
    return [record for file in files for record in read_file(file)]
