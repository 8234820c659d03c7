"""Progress reports on stderr: a bar on a terminal, otherwise a log line every few seconds."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

_log = logging.getLogger("labse")
_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """A context manager that counts and reports completed work.

    `with Progress("train", total=500, unit="step") as progress: progress.update(10, loss="2.31")`
    """

    def __init__(
        self, description: str, *, total: int | None = None, unit: str = "it", initial: int = 0
    ) -> None:
        self._description = description
        self._total = total
        self._unit = unit
        self._done = self._initial = initial
        self._written: int | None = None
        self._start = self._last_line = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            counts = {"total": total, "unit": unit, "initial": initial}
            shown = {"file": sys.stderr, "dynamic_ncols": True, "smoothing": 0.1}
            self._bar = tqdm(desc=description, **counts, **shown)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc_info) -> None:
        if self._bar is not None:
            self._bar.close()
        elif exc_info[0] is None and self._done != self._written:
            self._write_line()

    def update(self, count: int = 1, **facts: str) -> None:
        """Adds `count` units of work; `facts` are shown after the count."""
        self._done += count
        if self._bar is not None:
            if facts:
                self._bar.set_postfix(facts, refresh=False)
            self._bar.update(count)
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._write_line(**facts)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yields the items; each counts as one unit, done when the next item is requested."""
        for item in items:
            yield item
            self.update()

    def _write_line(self, **facts: str) -> None:
        now = time.monotonic()
        self._last_line, self._written = now, self._done
        rate = (self._done - self._initial) / max(now - self._start, 1e-9)
        total = "" if self._total is None else f"/{self._total}"
        shown = "".join(f", {name} {value}" for name, value in facts.items())
        done = f"{self._done}{total} {self._unit}"
        _log.info("%s: %s, %.1f %s/s%s", self._description, done, rate, self._unit, shown)
