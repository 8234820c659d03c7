"""Models that workers need: read where they are, or copied once to a worker's disk from a store."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import uuid
from pathlib import Path

from beam_pipelines.runtime.storage import STORAGE, open_file, scheme_of
from labse_tf.errors import InputError


def local_copy(path: str) -> str:
    """Returns a folder on this machine with the content of a model's folder.

    A local path is returned as it is. The files of a URL are copied to the folder for temporary
    files, where all processes of this machine find them. If they change in the store, they are
    copied again.

    Raises:
      InputError: if a URL names no files.
    """
    path = STORAGE.resolve(path)
    if scheme_of(path) is None:
        return path
    files = STORAGE.walk(path)
    if not files:
        raise InputError("no such folder", path=path, remedy="check the path")
    state = repr([(file, STORAGE.state(file)) for file in files])
    digest = hashlib.blake2b(state.encode("utf-8"), digest_size=16).hexdigest()
    copy = Path(tempfile.gettempdir(), f"labse-models-{os.getuid()}", digest)
    if not copy.exists():
        _copy(path, files, copy)
    return str(copy)


def _copy(folder: str, paths: list[str], copy: Path) -> None:
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    partial = copy.with_name(f"{copy.name}.{uuid.uuid4().hex}")
    try:
        for path in paths:
            target = partial / path.removeprefix(folder.rstrip("/") + "/")
            # A name in a store may contain "..".
            if not target.resolve().is_relative_to(partial.resolve()):
                raise InputError("leads out of its folder", path=path, remedy="rename it")
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_file(path) as stream, open(target, "wb") as local:
                shutil.copyfileobj(stream, local)
        os.rename(partial, copy)
    except OSError:
        if not copy.exists():  # Else another process was faster.
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
