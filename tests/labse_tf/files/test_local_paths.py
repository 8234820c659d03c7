"""file:// URLs are paths (RFC 8089); any other URL is refused, by whatever takes a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_files import write_lines

import labse_tf
from beam_pipelines import build_vocab
from labse_tf.config import load_config
from labse_tf.embedding.file import embed_file
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError
from labse_tf.files import outputs, textio
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.local_paths import local_path
from labse_tf.retrieval.vectors import open_vectors
from labse_tf.training.runs import run_dir as run_dirs

LOCAL_PATHS = {
    # The forms of RFC 8089, appendix B, that name a file of this machine.
    "file:///path/to/file": "/path/to/file",
    "file:/path/to/file": "/path/to/file",
    "FILE://LocalHost/path": "/path",
    "file:///": "/",
    "file:///a%20b/%C3%A9%25.tsv": "/a b/é%.tsv",
    "file:///%FF": "/\udcff",  # Names of files are bytes, not all of them UTF-8.
    "file:///a+b/part-?.tsv#1": "/a+b/part-?.tsv#1",
    # What is no URL stays as it is.
    **{name: name for name in ("clean/de.tsv", "/clean/de%20.tsv", "./gs://bucket", "-", "")},
    **{name: name for name in ("module.part:attribute", "OWNER/NAME", "12:/noon", "file:relative")},
}


REFUSED = {
    **dict.fromkeys(("gs://bucket/x", "gs:/bucket/x"), "the scheme gs:// is not supported"),
    "s3a://bucket/x": "the scheme s3a:// is not supported",
    "HTTP://example.org": "the scheme http:// is not supported",
    "x-y+z.1://x": "the scheme x-y+z.1:// is not supported",
    **dict.fromkeys(
        ("file://host/path", "file://", "file://localhost", "file:///%00"),
        "is not a file on this machine",
    ),
}


def test_local_paths():
    assert {name: local_path(name) for name in LOCAL_PATHS} == LOCAL_PATHS
    for url, problem in REFUSED.items():
        with pytest.raises(InputError) as caught:
            local_path(url)
        assert (caught.value.path, caught.value.problem) == (url, problem)


PYTHON_API = (
    labse_tf.load,
    lambda url: open_encoder(str(url)),
    lambda url: find_corpus_files([str(url)]),
    lambda url: list(textio.read_lines(url)),
    open_vectors,
    load_config,
    run_dirs.open_existing,
    lambda url: run_dirs.open_or_create(url, None).__enter__(),
    outputs.check_free,
    lambda url: outputs.whole_file(url).__enter__(),
    lambda url: outputs.whole_dir(url).__enter__(),
    lambda url: outputs.write_json(url, {}),
    lambda url: embed_file("model", "text.txt", url, open_encoder=open_encoder),
)


def test_python_functions_refuse_urls(tmp_path, monkeypatch):
    """Also those that pathlib has made gs:/bucket/x of."""
    monkeypatch.chdir(tmp_path)
    for function in PYTHON_API:
        for url in ("abfs://bucket/x", Path("gs://bucket/x")):
            with pytest.raises(InputError, match="the scheme (abfs|gs):// is not supported"):
                function(url)
    assert list(tmp_path.iterdir()) == []


def test_python_functions_take_file_urls(tiny_config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a b"
    folder.mkdir()
    write_lines(folder / "de.txt", ["Guten Tag", "Gute Nacht"])
    url = folder.as_uri()
    assert url.endswith("a%20b")
    options = {"vocab_size": 300, "counts": f"{url}/counts", "overwrite": True}
    for _ in range(2):  # The second takes the counts that are there.
        build_vocab.run([f"{url}/de.txt"], f"{url}/vocab.txt", **options)
    assert {path.name for path in folder.iterdir()} == {"de.txt", "vocab.txt", "counts"}
    with run_dirs.open_or_create(f"{url}/run", tiny_config) as run_dir:
        assert run_dir.path == folder / "run"
    assert run_dirs.open_existing(f"{url}/run").path == run_dir.path
    assert [path.name for path in tmp_path.iterdir()] == ["a b"]
