"""Writes files as `torch.save` does, from NumPy arrays: PyTorch is not installed for the tests."""

from __future__ import annotations

import io
import pickle
import sys
import types
import zipfile
from unittest import mock

import numpy as np

STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage"}
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


def save(content, path, *, before_1_6=False):
    """`content` may hold dicts, numbers, strings and arrays."""
    modules = {name: types.ModuleType(name) for name in ("torch", "torch._utils")}
    for name in STORAGES.values():
        made = type(name, (), {"__module__": "torch"})
        setattr(modules["torch"], name, made)

    def _rebuild_tensor_v2(*arguments):
        raise NotImplementedError

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    modules["torch._utils"]._rebuild_tensor_v2 = _rebuild_tensor_v2
    storages = []

    class Storage:
        def __init__(self, array):
            self.array, self.key = array, str(len(storages))
            storages.append(self)

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, Storage):
                kind = getattr(modules["torch"], STORAGES[obj.array.dtype.name])
                view = (None,) if before_1_6 else ()
                return ("storage", kind, obj.key, "cpu", obj.array.size, *view)
            return None

        def reducer_override(self, obj):
            if isinstance(obj, np.ndarray):
                steps = tuple(step // obj.itemsize for step in obj.strides)
                base = obj if obj.flags.c_contiguous else obj.base
                offset = (obj.ctypes.data - base.ctypes.data) // obj.itemsize
                storage = Storage(np.ascontiguousarray(base).ravel())
                return _rebuild_tensor_v2, (storage, offset, obj.shape, steps, False, {})
            return NotImplemented

    with mock.patch.dict(sys.modules, modules):
        stream = io.BytesIO()
        Pickler(stream, protocol=2).dump(content)
    if before_1_6:
        keys = [one.key for one in reversed(storages)]
        facts = {"protocol_version": VERSION, "little_endian": True, "type_sizes": {"int": 4}}
        before = [pickle.dumps(one, protocol=2) for one in (MAGIC, VERSION, facts)]
        after = [pickle.dumps(keys, protocol=2)]
        for one in reversed(storages):
            after += [one.array.size.to_bytes(8, "little"), one.array.tobytes()]
        path.write_bytes(b"".join([*before, stream.getvalue(), *after]))
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", stream.getvalue())
        archive.writestr("archive/version", "3\n")
        for one in storages:
            archive.writestr(f"archive/data/{one.key}", one.array.tobytes())
