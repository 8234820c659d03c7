"""Copies of files in a store: TensorFlow's own, in memory, stands for gs:// and others."""

from __future__ import annotations

import json
import uuid
import zlib

import pytest

from labse_tf.errors import InputError
from labse_tf.files import staging, stores
from labse_tf.files.staging import Mirror, input_path, output_path


@pytest.fixture(autouse=True)
def staging_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(staging.FOLDER, str(tmp_path / "staging"))
    with staging.outputs():
        yield


@pytest.fixture
def url():
    return f"ram://bucket-{uuid.uuid4()}/folder"


def content(url):
    return {name: stores.read(f"{url}{name}") for name in stores.list_files(url)}


def test_a_file_brings_what_belongs_to_it(url):
    """Vectors their calibration, an encoder its model dir."""
    for name in ("v.npy", "v.npy.calibration.json", "v.npy.other"):
        stores.write(f"{url}/{name}", name)
    path = Mirror(f"{url}/v.npy").path
    assert input_path(f"{url}/v.npy") == str(path)
    assert sorted(one.name for one in path.parent.iterdir()) == ["v.npy", "v.npy.calibration.json"]
    for name in ("model.json", "onnx/model.onnx", "onnx/vocab.txt"):
        stores.write(f"{url}/m/{name}", name)
    model = Mirror(f"{url}/m").path
    assert input_path(f"{url}/m/onnx/model.onnx") == str(model / "onnx" / "model.onnx")
    assert (model / "model.json").read_text() == "model.json"


def test_paths_of_this_machine_and_of_no_store(url, tmp_path):
    assert input_path(tmp_path / "a") == output_path(tmp_path / "a") == str(tmp_path / "a")
    assert input_path(f"file://{tmp_path}/a") == str(tmp_path / "a")
    with pytest.raises(InputError, match=f"{url}: no such file or folder"):
        input_path(url)
    with pytest.raises(InputError, match="abfs://a/b: the scheme abfs:// is not supported"):
        input_path("abfs://a/b")
    with pytest.raises(InputError, match="is not a file on this machine"):
        input_path("file://elsewhere/a")


def test_an_output_is_sent_when_it_is_complete_its_markers_last(url, monkeypatch):
    path = Mirror(url).path
    assert output_path(url) == str(path)
    names = ("checkpoints/checkpoint", "config.yaml", "model.json", "z", "checkpoints/ckpt-1")
    for name in (*names, "a.partial"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)
    sent, send = [], stores.send

    def note(link, target):
        sent.append(target.removeprefix(f"{url}/"))
        send(link, target)

    monkeypatch.setattr(stores, "send", note)
    assert content(url) == {}
    staging.publish()
    assert sent[:2] == ["checkpoints/ckpt-1", "z"] and sorted(sent) == sorted(names)
    for name in names[:-1]:
        (path / name).unlink()
    (path / "b").write_text("b")
    staging.publish()
    assert content(url) == {"/b": "b", "/checkpoints/ckpt-1": "checkpoints/ckpt-1"}


def test_overwriting_replaces_all_when_it_is_sent_and_what_was_not_sent_is_kept(url):
    stores.write(f"{url}/old", "old")
    path = output_path(url, overwrite=True)
    assert not Mirror(url).path.exists()
    staging.publish()  # A command that made nothing removes nothing.
    assert content(url) == {"/old": "old"}
    Mirror(url).path.mkdir(parents=True)
    for name in ("new", "more"):
        with open(f"{path}/{name}", "w") as file:
            file.write(name)
        if name == "new":
            staging.publish()
            assert content(url) == {"/new": "new"}
    # The process is killed; the command is run again.
    output_path(url)
    staging.publish()
    assert content(url) == {"/new": "new", "/more": "more"}


def test_of_two_owners_the_last_goes_on(url, monkeypatch):
    first = Mirror(url)
    first.path.mkdir(parents=True)
    (first.path / "a").write_text("a")
    first.claim()
    first.push()
    monkeypatch.setenv(staging.FOLDER, f"{first.path.parent}/another machine")
    second = Mirror(url)
    assert second.pull()
    second.claim()
    (second.path / "a").write_text("second")
    (first.path / "a").write_text("first")
    with pytest.raises(InputError, match="another process has taken this run over"):
        first.push()
    second.push()
    assert content(url)["/a"] == "second"
    # While training goes on, it is said with the next checkpoint.
    first.push_soon()
    first._sending.exception()
    with pytest.raises(InputError, match="another process"):
        first.push_soon()


def test_a_store_that_fails_is_tried_again(url, monkeypatch, caplog):
    from tensorflow.errors import UnavailableError

    mirror = Mirror(url)
    mirror.path.mkdir(parents=True)
    (mirror.path / "a").write_text("a")
    send, broken = stores.send, [True]

    def fail_once(link, target):
        if broken:
            broken.clear()
            raise UnavailableError(None, None, "503")
        send(link, target)

    monkeypatch.setattr(stores, "send", fail_once)
    mirror.push_soon()
    mirror._sending.exception()
    mirror.push_soon()
    mirror._sending.result()
    assert "503" in caplog.text
    assert content(url) == {"/a": "a"}
    broken.append(True)
    (mirror.path / "b").write_text("b")
    with pytest.raises(InputError, match=r"cannot be written \(503\)"):
        mirror.push()


def test_a_file_that_changes_while_it_is_sent_is_sent_again(url):
    mirror = Mirror(url)
    mirror.path.mkdir(parents=True)
    log = mirror.path / "metrics.jsonl"
    log.write_text("1\n")
    snapshot = mirror._snapshot()
    with log.open("a") as file:
        file.write("2\n")
    mirror._send(*snapshot)
    mirror.push()
    assert content(url) == {"/metrics.jsonl": "1\n2\n"}


def test_only_what_has_changed_is_copied_again(url, monkeypatch):
    """And what is gone in the store goes here."""

    def stamp(file):
        text = stores.read(file)
        return len(text), 1 + zlib.crc32(text.encode())

    # TensorFlow's memory knows no times.
    monkeypatch.setattr(stores, "stamp_of", stamp)
    stores.write(f"{url}/de/a", "Flüsse")
    stores.write(f"{url}/b", "b")
    copied, fetch, path = [], stores.fetch, Mirror(url).path
    monkeypatch.setattr(stores, "fetch", lambda *names: (copied.append(names[0]), fetch(*names)))
    assert input_path(f"{url}/") == f"{path}/"
    assert copied == [f"{url}/b", f"{url}/de/a"]
    assert (path / "de" / "a").read_text("utf-8") == "Flüsse"
    input_path(url)
    stores.write(f"{url}/b", "สวัสดี")
    stores.remove(f"{url}/de/a")
    input_path(url)
    assert copied[2:] == [f"{url}/b"] and (path / "b").read_text("utf-8") == "สวัสดี"
    assert not (path / "de" / "a").exists()
    # What this process sends need not come back.
    output_path(url)
    (path / "c").write_text("c")
    staging.publish()
    input_path(url)
    assert stores.read(f"{url}/c") == "c" and len(copied) == 3
    assert sorted(json.loads((path.parents[1] / "same.json").read_text())) == ["/b", "/c"]


def test_a_store_that_cannot_be_reached_is_one_line(monkeypatch):
    from tensorflow.errors import FailedPreconditionError

    def fail(url):
        raise FailedPreconditionError(None, None, "no such host\n\twhen reading gs://b/x")

    monkeypatch.setattr(stores, "list_files", fail)
    for function in (input_path, output_path):
        with pytest.raises(InputError) as caught:
            function("ram://b/x")
        assert str(caught.value).startswith("ram://b/x: cannot be read (no such host); check ")
