"""Files of torch.save: read without PyTorch, and never run."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch_like

from labse_tf.errors import InputError
from labse_tf.systems.laser.torch_files import read_torch_file

ONES = np.ones(1000, np.float32)


@pytest.mark.parametrize("before_1_6", [False, True])
def test_what_was_written_is_read(tmp_path, before_1_6):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensors = {
        "plain": base,
        "transposed": base.T,
        "part": base[1:, 1:3],
        "half": np.array([1.5, -2.0], np.float16),
        "ids": np.array([[7]], np.int64),
        "none": np.zeros((0, 3), np.float32),
    }
    content = {"model": OrderedDict(tensors), "params": {"size": 3, "both": True}, "名": ["é", 1]}
    torch_like.save(content, tmp_path / "file.pt", before_1_6=before_1_6)
    found = read_torch_file(tmp_path / "file.pt")
    assert found["params"] == content["params"] and found["名"] == ["é", 1]
    assert list(found["model"]) == list(tensors)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found["model"][name], tensor)
        assert found["model"][name].dtype == tensor.dtype


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/labse_evil",)


def refused(path, message):
    with pytest.raises(InputError, match=message):
        read_torch_file(path)
    assert not os.path.exists("/tmp/labse_evil")


def archive(path, content, compression=zipfile.ZIP_STORED, **data):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("archive/data.pkl", content)
        for key, value in data.items():
            file.writestr(f"archive/data/{key}", value)


def pickle_of(array, path):
    """The pickle that `torch.save` writes for a dict of one tensor."""
    torch_like.save({"a": array}, path)
    with zipfile.ZipFile(path) as file:
        return file.read("archive/data.pkl")


def row_of_pickles(content, *after, version=torch_like.VERSION, little_endian=True):
    parts = (torch_like.MAGIC, version, {"little_endian": little_endian})
    return b"".join([*(pickle.dumps(one, 2) for one in parts), content, *after])


def test_nothing_else_is_called(tmp_path):
    path, evil = tmp_path / "file.pt", pickle.dumps({"model": Evil()}, 2)
    for content in (evil, pickle.dumps({"model": Evil()}, 4)):
        archive(path, content)
        refused(path, "names .*system, which is no tensor")
    # Before 1.6: each of the pickles.
    whole = row_of_pickles(pickle.dumps({}, 2), evil)
    for content in (row_of_pickles(evil), whole, pickle.dumps(torch_like.MAGIC, 2) + evil):
        path.write_bytes(content)
        refused(path, "names .*system, which is no tensor")
    for name in ("builtins.eval", "torch.load", "torch._utils._rebuild_qtensor"):
        module, _, function = name.rpartition(".")
        archive(path, f"c{module}\n{function}\n(S'1'\ntR.".encode())
        refused(path, f"names {name}, which is no tensor")


def test_broken_files(tmp_path):
    path = tmp_path / "file.pt"
    torch_like.save({"a": ONES}, path)
    whole = path.read_bytes()
    for content, message in (
        (whole[:-100], "is no file of torch.save"),
        (whole.replace(b"\x80?", b"\x81?", 1), "is damaged"),  # A flipped bit.
    ):
        path.write_bytes(content)
        refused(path, message)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("other.txt", "")
    refused(path, "is damaged")
    # BUILD sets attributes of what a name stands for.
    archive(path, b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00xK\x01sb.")
    refused(path, "is damaged")
    refused(tmp_path / "none.pt", "none.pt")
    torch_like.save({"a": ONES}, path, before_1_6=True)
    whole = path.read_bytes()
    start = whole.index((1000).to_bytes(8, "little"))
    content, keys = pickle.dumps({}, 2), pickle.dumps([], 2)
    for broken in (
        *(whole[:-1], whole[: start + 4], whole[: start - 4], whole[:20]),
        # Another length than the tensor's storage has, and one beyond the file.
        whole[:start] + (999).to_bytes(8, "little") + whole[start + 8 :],
        whole.replace(b"M\xe8\x03N", b"J\xff\xff\xff\x7fN"),
        row_of_pickles(content, pickle.dumps(["0"], 2)),
        row_of_pickles(content, keys, version=1002),
        row_of_pickles(content, keys, little_endian=False),
    ):
        assert broken != whole
        path.write_bytes(broken)
        refused(path, "is damaged")
    path.write_bytes(row_of_pickles(content, keys))
    assert read_torch_file(path) == {}


def test_a_tensor_beyond_its_storage_is_refused(tmp_path):
    """By a shape, by a stride of 0, or by compression: few bytes do not become many."""
    path = tmp_path / "file.pt"
    content = pickle_of(np.ones(10, np.float32), path)
    archive(path, content, **{"0": bytes(20)})
    refused(path, "is damaged")
    # (10,) becomes (200,): the same pickle, another shape.
    archive(path, content.replace(b"K\n\x85", b"K\xc8\x85"), **{"0": bytes(40)})
    refused(path, "reads beyond")
    # (1,) and its stride of (1,) become others.
    before, middle, after = pickle_of(np.ones(1, np.float32), path).split(b"K\x01\x85", 2)
    for number in (10**13, 10**7):
        many = b"\x8a\x08" + number.to_bytes(8, "little") + b"\x85"
        changed = before + many + middle + b"K\x00\x85" + after
        archive(path, changed, **{"0": np.ones(1, np.float32).tobytes()})
        refused(path, "is damaged")
    archive(path, pickle_of(ONES, path), zipfile.ZIP_DEFLATED, **{"0": ONES.tobytes()})
    refused(path, "compressed, which PyTorch never does")
