"""Copies of what is in a store, such as gs://: fetched, worked on, and sent back.

Commands work on files of this machine. An input in a store is copied here before it is read
(`input_path`); an output is made here, and sent when it is complete (`output_path`, `publish`); a
run dir goes both ways, a checkpoint at a time, while training goes on (`Mirror`). Copies are in
$LABSE_STAGING, by default ~/.cache/labse_tf, and only what has changed is copied again.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

from labse_tf.errors import InputError
from labse_tf.files import stores
from labse_tf.files.local_paths import TENSORFLOW_SCHEMES, local_path, scheme_of
from labse_tf.files.outputs import PARTIAL_SUFFIX, write_json
from labse_tf.files.stores import Stamp

FOLDER = "LABSE_STAGING"
OWNER_FILE = "/owner.json"
# Completion markers, sent last.
_MARKERS = ("best.json", "checkpoint", "model.json", "report.json", "config.yaml")
# Parts of the names of what TensorFlow and our own outputs are still writing.
_UNFINISHED = (PARTIAL_SUFFIX, "_temp", ".tempstate", ".tmp")
_ENCODERS = (".onnx", ".tflite")

_log = logging.getLogger("labse")
_outputs: dict[Path, Mirror] = {}


def input_path(name: str | os.PathLike[str]) -> str:
    """Returns a local path, or the path of an up-to-date copy of a file or folder in a store."""
    url = os.fspath(name)
    if scheme_of(url) not in TENSORFLOW_SCHEMES:
        return local_path(url)
    with stores.input_errors(url):
        whole = url.rstrip("/")
        model_dir = whole.rsplit("/", 2)[0]
        # An encoder file is read together with its model dir.
        if whole.endswith(_ENCODERS) and stores.gfile().exists(f"{model_dir}/model.json"):
            whole = model_dir
        mirror = Mirror(whole)
        found = mirror.pull()
    if not found:
        raise InputError("no such file or folder", path=url, remedy="check the URL")
    return f"{mirror.path}{url[len(whole) :]}"


class _LocalStorage(stores.Storage):
    def resolve(self, name: str | os.PathLike[str]) -> str:
        return input_path(name)


# The disk of this machine, and copies on it of what is in stores.
LOCAL = _LocalStorage()


def output_path(name: str | os.PathLike[str], *, overwrite: bool = False) -> str:
    """Returns a local path, or where to make an output that `publish` sends to its store.

    An output in the store is fetched first, to be continued, or not replaced. With `overwrite`, it
    is removed when the new output is sent.
    """
    url = os.fspath(name)
    if scheme_of(url) not in TENSORFLOW_SCHEMES:
        return local_path(url)
    mirror = Mirror(url.rstrip("/"))
    with stores.input_errors(url):
        mirror.start_over() if overwrite else mirror.pull()
    _outputs[mirror.path] = mirror
    return str(mirror.path)


@contextlib.contextmanager
def outputs() -> Iterator[None]:
    """Within this context, a command has outputs of its own."""
    before = dict(_outputs)
    _outputs.clear()
    try:
        yield
    finally:
        _outputs.clear()
        _outputs.update(before)


def publish() -> None:
    """Sends all outputs to their stores; raises InputError if one cannot be sent."""
    for mirror in _outputs.values():
        mirror.push()


def mirror_of(path: Path) -> Mirror | None:
    """Returns the mirror of an output by the path of its copy; None if that is no copy."""
    return _outputs.get(path)


def named(text: str) -> str:
    """Returns a message with URLs in place of the paths of their copies."""
    for path, mirror in _outputs.items():
        text = text.replace(str(path), mirror.url)
    return text


class Mirror:
    """A file or folder in a store, `url` without a slash at the end, and its copy here, `path`.

    If `sends` is False, pushing does nothing: of several workers, one sends.
    """

    def __init__(self, url: str) -> None:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(os.environ.get(FOLDER) or Path(cache, "labse_tf")).absolute()
        self._folder = root / hashlib.sha256(url.encode("utf-8")).hexdigest()[:16]
        self._links = self._folder / "sending"
        self._same_file = self._folder / "same.json"
        self.url, self.sends = url, True
        self.path = self._folder / "copy" / (url.rpartition("/")[2] or "_")
        # The stamps, there and here, of the files that are the same on both sides.
        self._same: dict[str, tuple[Stamp, Stamp]] = {}
        self._replaces = False
        self._owner: str | None = None
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._sending: concurrent.futures.Future | None = None

    def pull(self) -> bool:
        """Fetches what has changed in the store; returns whether there is anything.

        What has changed only here, or is new here, was not sent yet: it stays.
        """
        there = stores.list_files(self.url)
        there.pop(OWNER_FILE, None)
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # Waits while another process fetches the same.
            if self._same_file.is_file():
                found = json.loads(self._same_file.read_text("utf-8"))
                self._same = {name: (tuple(one), tuple(two)) for name, (one, two) in found.items()}
            here = self._list_here()
            new = [name for name in sorted(there) if name not in here or self._differs(name, there)]
            if new:
                _log.info("%s: copying %d files", self.url, len(new))
            for name in self._same.keys() - there.keys():
                self._local(name).unlink(missing_ok=True)
                del self._same[name]
            for name in new:
                stores.fetch(f"{self.url}{name}", self._local(name))
                self._same[name] = there[name], self._stamp(name)
            write_json(self._same_file, self._same, overwrite=True)
        return bool(there)

    def start_over(self) -> None:
        """Removes the copy now, and what is in the store when the first file is sent."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._same, self._replaces = {}, True

    def claim(self) -> None:
        """Makes this process the owner: another one fails when it sends next, for want of locks."""
        self._owner = f"{socket.gethostname()}, process {os.getpid()}, {uuid.uuid4()}"
        self._replace()
        stores.write(f"{self.url}{OWNER_FILE}", json.dumps({"owner": self._owner}))

    def withdraw(self) -> None:
        """Removes what is in the store."""
        stores.remove(self.url)

    def push_soon(self) -> None:
        """Starts to send what has changed, unless the last time is still under way.

        Raises InputError if another process owns it; another error of the last time is logged.
        """
        if not self.sends or self._sending is not None and not self._sending.done():
            return
        if self._sending is not None and (error := self._sending.exception()):
            if isinstance(error, InputError):
                raise error
            _log.warning("%s: cannot be written (%s); trying again", self.url, error)
        self._sending = self._pool.submit(self._send, *self._snapshot())

    def push(self) -> None:
        """Sends what has changed and waits for it; raises InputError if that fails."""
        if not self.sends or not self.path.exists():
            return
        if self._sending is not None:
            concurrent.futures.wait([self._sending])
            self._sending = None
        try:
            self._send(*self._snapshot())
        except stores.failures() as error:
            remedy = f"copy {self.path} there, or run the command again"
            problem = f"cannot be written ({error.message})"
            raise InputError(problem, path=self.url, remedy=remedy) from error

    def _snapshot(self) -> tuple[dict[str, Stamp], list[str]]:
        """Links the files that have changed; returns their stamps, and the files that are gone."""
        shutil.rmtree(self._links, ignore_errors=True)
        here = self._list_here()
        sent = {name: stamp for name, (_, stamp) in self._same.items()}
        changed = {name: stamp for name, stamp in here.items() if sent.get(name) != stamp}
        for name in changed:
            link = self._link(name)
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(self._local(name), link)
        return changed, [name for name in self._same if name not in here]

    def _send(self, changed: dict[str, Stamp], gone: list[str]) -> None:
        self._replace()
        if self._owner is not None:
            text = stores.read(f"{self.url}{OWNER_FILE}") or '{"owner": "nobody"}'
            if (owner := json.loads(text)["owner"]) != self._owner:
                problem = f"another process has taken this run over ({owner})"
                raise InputError(problem, path=self.url, remedy="let only one of them run")
        for name in sorted(changed, key=lambda name: (name.endswith(_MARKERS), name)):
            stores.send(self._link(name), f"{self.url}{name}")
            self._same[name] = stores.stamp_of(f"{self.url}{name}"), changed[name]
        for name in gone:
            stores.remove(f"{self.url}{name}")
            del self._same[name]
        write_json(self._same_file, self._same, overwrite=True)
        shutil.rmtree(self._links, ignore_errors=True)

    def _replace(self) -> None:
        for end in ("", *stores.SIDE_FILES) if self._replaces else ():
            stores.remove(f"{self.url}{end}")
        self._replaces = False

    def _list_here(self) -> dict[str, Stamp]:
        """Returns the stamps of the finished files of the copy, named as by `list_files`."""
        files = [self._local(end) for end in ("", *stores.SIDE_FILES)]
        if self.path.is_dir():
            files = list(self.path.rglob("*"))
        names = [str(file)[len(str(self.path)) :] for file in files if file.is_file()]
        finished = [name for name in names if not any(part in name for part in _UNFINISHED)]
        return {name: self._stamp(name) for name in finished}

    def _local(self, name: str) -> Path:
        return Path(f"{self.path}{name}")

    def _link(self, name: str) -> Path:
        return self._links / (name.lstrip("/") or "_")

    def _stamp(self, name: str) -> Stamp:
        status = self._local(name).stat()
        return status.st_size, status.st_mtime_ns

    def _differs(self, name: str, there: dict[str, Stamp]) -> bool:
        """Whether what is in the store may differ from what was there last time."""
        # A store without times could have another file of the same size.
        return name not in self._same or self._same[name][0] != there[name] or there[name][1] <= 0
