"""The formats that others do without: if one fails, the others are kept."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from export.verification import Check, verify
from labse_tf.errors import InputError

# By the first word of a check's name; the other checks are of hub.
_OF_CHECKS = {"text": "text", "huggingface": "hf", "lite": "lite", "onnx": "onnx"}


class Apart:
    """The formats of a model dir that may fail alone.

    Attributes:
      failed: name of a format -> why it is left out.
    """

    def __init__(self, folder: Path) -> None:
        self.failed: dict[str, str] = {}
        self._folder = folder
        self._written: dict[str, set[str]] = {"text": {"text_encoder"}}

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Leaves a format out if the block, which writes it, fails for a reason of its own."""
        before = set(os.listdir(self._folder))
        reason = ""
        try:
            yield
        except (OSError, ImportError, MemoryError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}"
        self._written[name] = set(os.listdir(self._folder)) - before
        if reason:
            self._leave_out(name, reason)

    def verify(self, report: Callable[[Check], None]) -> None:
        """Same as `verify`, but leaves formats out whose checks fail, unless it is hub."""
        checks: list[Check] = []
        try:
            verify(self._folder, lambda check: (checks.append(check), report(check)))
        except InputError:
            failed = {
                _OF_CHECKS.get(check.name.partition(" ")[0], "hub"): f"{check.name}: {check.detail}"
                for check in reversed(checks)
                if not check.ok
            }
            if not failed or not failed.keys() <= self._written.keys():
                raise
            for name, reason in failed.items():
                self._leave_out(name, reason)

    def refuse(self, out: str | os.PathLike[str], *, remedy: str) -> None:
        """Raises InputError if a format failed."""
        if self.failed:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in self.failed.items())
            raise InputError(f"could not be given the format {reasons}", path=out, remedy=remedy)

    def _leave_out(self, name: str, reason: str) -> None:
        self.failed[name] = reason
        for path in (self._folder / one for one in self._written.pop(name)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
