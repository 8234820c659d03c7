"""The exception for invalid user input; the command line prints it as one line."""

from __future__ import annotations

import os
from typing import Any


class InputError(Exception):
    """Invalid user input. `str()` gives `FILE:LINE: what is wrong; what to do`.

    Attributes:
      path: the file or folder at fault, or None.
      line: the line in that file, counted from 1, or None.
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.path = None if path is None else os.fspath(path)
        self.line = line
        super().__init__(problem)

    def __str__(self) -> str:
        place = ""
        if self.path is not None:
            place = f"{self.path}: " if self.line is None else f"{self.path}:{self.line}: "
        return f"{place}{self.problem}; {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Beam workers and process pools send exceptions between processes.
        return _rebuild, (self.problem, self.remedy, self.path, self.line)


def _rebuild(problem: str, remedy: str, path: str | None, line: int | None) -> InputError:
    return InputError(problem, remedy=remedy, path=path, line=line)
