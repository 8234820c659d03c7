"""`labse corpus embed`, end to end, with a real model; and how rows are laid out in shards."""

import gzip
import json

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from text_files import write_lines
from tiny_text import SENTENCES, sentences_of

import labse_tf
from beam_pipelines import embed_texts
from beam_pipelines.embed_texts import EmbeddedBatch, WriteVectors
from beam_pipelines.reading import readers
from beam_pipelines.runtime.engine import has_worker_processes
from labse_tf.cli.main import main
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.retrieval.vectors import open_vectors

# A token is a character here, and the model reads 128 of them.
LONG = "Katze " * 60


def shards_of(folder):
    """[(name, vectors, lines)] in the order of the names."""
    arrays = sorted(folder.glob("*.npy"))
    assert len(arrays) * 2 == len(list(folder.iterdir()))
    texts = [gzip.decompress(path.with_suffix(".txt.gz").read_bytes()) for path in arrays]
    return [
        (path.stem, np.load(path, allow_pickle=False), text.decode().split("\n")[:-1])
        for path, text in zip(arrays, texts, strict=True)
    ]


@pytest.fixture(scope="module")
def model(model_dir):
    return labse_tf.load(model_dir)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Text of many scripts, in all forms of files; -> (folder, language -> sentences in order)."""
    folder = tmp_path_factory.mktemp("corpus")
    german, japanese = sentences_of("de")[:9], sentences_of("ja")[:10]
    write_lines(folder / "a" / "de.txt", ["  Ein Haus. \r", "", LONG])
    rows = {"text": ["Katze\nund\r\n Hund", "ostal", "ปลา"], "language_code": ["de", "xx", "th"]}
    pq.write_table(pa.table(rows), folder / "b.parquet")
    write_lines(folder / "de.txt.xz", german)
    write_lines(folder / "en.txt.gz", SENTENCES)
    (folder / "ja.txt").write_text("\n".join(japanese), "utf-8")
    texts = ["Ein Haus.", "", LONG.strip(), "Katze und  Hund", *german]
    return folder, {"de": texts, "en": list(SENTENCES), "ja": japanese, "th": ["ปลา"]}


def test_each_row_is_the_vector_of_its_line_in_the_order_of_the_input(
    tmp_path, monkeypatch, caplog, capsys, corpus, model_dir, model
):
    folder, expected = corpus
    # Smaller than a shard, and no divisor of it: batches lie across the ends of shards.
    monkeypatch.setattr(readers, "RECORDS_PER_BATCH", 3)
    out = tmp_path / "vectors [v2]*?"  # A name is no pattern.
    arguments = [str(folder), "--model", str(model_dir), "--shard-sentences", "5"]
    assert main(["corpus", "embed", *arguments, "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {*expected, "report.json"}
    for language, texts in expected.items():
        names, arrays, lines = zip(*shards_of(out / language), strict=True)
        count = -(-len(texts) // 5)
        assert names == tuple(f"part-{number:05}-of-{count:05}" for number in range(count))
        assert [len(part) for part in lines[:-1]] == [5] * (count - 1)
        assert [len(array) for array in arrays] == [len(part) for part in lines]
        assert sum(lines, []) == texts
        assert {array.dtype for array in arrays} == {np.dtype("float16")}
        vectors = open_vectors(out / language, dim=model.dim)[:]
        np.testing.assert_array_equal(vectors, np.concatenate(arrays))
        np.testing.assert_allclose(vectors, model.encode(texts), rtol=0, atol=1e-3)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    report = json.loads((out / "report.json").read_text("utf-8"))
    names = ("read", "kept", "cut", "shards")
    counts = {code: tuple(map(row.get, names)) for code, row in report["languages"].items()}
    assert counts == {
        **{"de": (13, 13, 1, 3), "en": (17, 17, 0, 4), "ja": (10, 10, 0, 2)},
        **{"th": (1, 1, 0, 1), "xx": (1, 0, 0, 0)},
    }
    assert report["languages"]["xx"]["dropped"] == {"bad_record": 0, "other_language": 1}
    assert report["model"] == {"path": str(model_dir), "sha256": ModelDir(model_dir).sha256()}
    assert report["dtype"] == "float16"
    told = "embedded 41 of 42 sentences in 5 languages, 1 of them cut; 10 shards"
    assert told in caplog.text and "embed: 41 sentence" in caplog.text
    assert "other_language 1" in capsys.readouterr().out


def test_bad_lines_end_the_job_or_are_counted(tmp_path, capfd, model_dir, model):
    path = tmp_path / "de.txt"
    path.write_bytes(b"Ein Haus.\nEin \xff Baum.\nEin Fluss.\n")
    out = tmp_path / "out"
    command = ["corpus", "embed", str(path), "--model", str(model_dir), "--out", str(out)]
    assert main(command) == 2
    assert f"labse: error: {path}:2: invalid UTF-8" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["de.txt"]
    assert main([*command, "--max-bad-records", "1", "--dtype", "float32"]) == 0
    [(_, vectors, lines)] = shards_of(out / "de")
    assert (lines, vectors.dtype) == (["Ein Haus.", "Ein Fluss."], np.float32)
    np.testing.assert_allclose(vectors, model.encode(lines), rtol=0, atol=1e-6)
    [bad] = json.loads((out / "report.json").read_text("utf-8"))["bad_records"]
    assert (bad["file"], bad["line"]) == (str(path), 2)


def test_what_is_refused_before_anything_is_read(tmp_path, monkeypatch, model_dir):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "de.txt", ["Ein Haus."])
    write_lines(tmp_path / "de.tsv", ["A house.\tEin Haus."])
    write_lines(tmp_path / "taken" / "notes", [])
    for options, message in (
        ({"dtype": "int8"}, "--dtype is int8; give one of float16, float32"),
        ({"sentences_per_shard": 0}, "--shard-sentences is 0"),
        ({"out": "taken"}, "not empty; choose another one, or add --overwrite"),
        ({"model": "nothing"}, "is not a model dir"),
        ({"inputs": ["de.tsv"]}, "holds no monolingual files"),
    ):
        with pytest.raises(InputError, match=message):
            embed_texts.run(
                **{"inputs": ["de.txt"], "out": "out", "model": str(model_dir), **options}
            )
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("size", "files"),
    [
        (4, [[4, 4], [4]]),  # shards end where batches and files do
        (7, [[3, 3, 1], [2], [3, 3, 3]]),  # they do not
        (100, [[1], [1], [1]]),  # one shard of several files
        (5, []),
    ],
)
def test_batches_in_any_order_make_shards_in_the_order_of_the_files(tmp_path, size, files):
    batches, number = [], 0
    for file, lengths in enumerate(files):
        first = number
        for length in lengths:
            rows = range(number, number + length)
            vectors = np.stack([rows, np.negative(rows)], axis=1).astype(np.float32)
            place = number - first
            batches.append(EmbeddedBatch("zu", file, place, list(map(str, rows)), vectors, 0))
            number += length
    out = tmp_path / "out"
    with TestPipeline() as pipeline:
        write = WriteVectors(str(out), "float32", size, str(tmp_path / "temporary"))
        pipeline | beam.Create(list(reversed(batches))) | write
    if not files:
        assert not out.exists()
        return
    names, arrays, lines = zip(*shards_of(out / "zu"), strict=True)
    assert names[-1] == f"part-{len(names) - 1:05}-of-{len(names):05}"
    lengths = [min(size, number - start) for start in range(0, number, size)]
    assert lengths == [len(array) for array in arrays] == [len(part) for part in lines]
    assert sum(lines, []) == list(map(str, range(number)))
    expected = np.stack([range(number), np.negative(range(number))], axis=1)
    np.testing.assert_array_equal(np.concatenate(arrays), expected)


def test_the_model_is_shared_where_workers_are_processes():
    mode = "--direct_running_mode=multi_"
    for option in ("--no_auth", f"{mode}threading"):
        assert not has_worker_processes([option])
    for option in (f"{mode}processing", "--runner=FlinkRunner"):
        assert has_worker_processes([option])


def test_a_hash_tells_models_apart_but_not_copies(tmp_path):
    for name in ("one", "copy", "other"):
        for part in ("preprocessor", "encoder"):
            write_lines(tmp_path / name / part / "saved_model.pb", [part])
    write_lines(tmp_path / "other" / "encoder" / "weights", ["1"])
    write_lines(tmp_path / "copy" / "README.md", ["not of the model"])
    model = write_lines(tmp_path / "one" / "onnx" / "model.onnx", ["int8"])
    one, copy, other = (ModelDir(tmp_path / name).sha256() for name in ("one", "copy", "other"))
    assert one == copy != other and len(one) == 64
    # Another encoder of the same model dir, and its weights beside it.
    onnx = ModelDir(model).sha256()
    write_lines(model.with_name("model.onnx_data"), ["weights"])
    assert len({one, onnx, ModelDir(model).sha256()}) == 3
