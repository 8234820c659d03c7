"""The exception for invalid user input; the command line prints it as one line."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import Any

# The disk is full, the quota is used up, or a file exceeds the size limit.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The system's errors of a file, and the remedies.
_REMEDIES = {
    **dict.fromkeys(NO_SPACE, "make room"),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), "check the permissions, or choose another place"
    ),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR), "choose another path"),
    **dict.fromkeys((errno.ENOENT, errno.ELOOP, errno.ENXIO), "check the path"),
    errno.EIO: "check the disk",
}
# How Python and PyArrow show such an error, and how an exception in another one looks.
_SHOWN = re.compile(
    r"""\[Errno (?P<number>\d+)\] [^'":[]*(?:(?<=file )|: )?(?:(['"])(?P<name>.*?)\2)?"""
    r"""|Error\((?P<said>\d+), ['"]"""
)


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


def of_system(error: BaseException, *, path: str | None = None) -> InputError | None:
    """Returns the InputError for a system error of a file: no room, no permission, ...

    `error` is an OSError, caused by one, or shows one in its last line, as Beam's do. `path` is
    named if the error names none.
    """
    number, name = _system_error(error)
    if number is None:
        return of_system(error.__cause__, path=path) if error.__cause__ else None
    remedy, path = _REMEDIES[number], name or path
    verb = "written" if number in NO_SPACE else "used"
    problem = f"{'' if path else 'the output '}cannot be {verb} ({os.strerror(number)})"
    return InputError(problem, path=path, remedy=remedy)


def _system_error(error: BaseException) -> tuple[int | None, str | None]:
    number, name = None, None
    if isinstance(error, OSError) and error.errno is not None:
        number, name = error.errno, error.filename
        name = os.fsdecode(name) if isinstance(name, str | bytes) else None
    if name is None:
        last = str(error).rstrip().rpartition("\n")[2]
        if found := _SHOWN.search(last):
            number, name = int(found["number"] or found["said"]), found["name"]
        elif type(error).__module__.startswith("tensorflow."):
            number = next((one for one in _REMEDIES if os.strerror(one) in last), None)
            name = last.partition("}} ")[2] or last
            name = name.partition(";")[0] if os.sep in name else None
    return (number, name) if number in _REMEDIES else (None, None)


@contextlib.contextmanager
def file_named(path: str) -> Iterator[None]:
    """Names the file in the system's errors inside the block that name none, as of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


def _rebuild(problem: str, remedy: str, path: str | None, line: int | None) -> InputError:
    return InputError(problem, remedy=remedy, path=path, line=line)
