"""Brings an InputError from a Beam worker back to the caller.

Beam turns a worker's exception into another one, and runners with several processes keep only the
text of its traceback. So the error is sent in a marked part of the message, in base64 because
runners quote and escape messages in many ways.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator

from labse_tf.errors import InputError

_MARK = re.compile(r"\[labse-input-error:([A-Za-z0-9+/=]+)\]")
# How Beam reports a KeyboardInterrupt.
_INTERRUPTED = re.compile(r"^KeyboardInterrupt \[while running")


@contextlib.contextmanager
def input_errors_marked() -> Iterator[None]:
    """Marks InputErrors; to be wrapped around the body of a DoFn that may raise one."""
    try:
        yield
    except InputError as error:
        facts = json.dumps([error.problem, error.remedy, error.path, error.line])
        mark = base64.b64encode(facts.encode()).decode()
        raise RuntimeError(f"{error} [labse-input-error:{mark}]") from None


@contextlib.contextmanager
def input_errors_recovered() -> Iterator[None]:
    """Raises the InputError that a worker marked; to be wrapped around the run of a pipeline.

    Raises:
      InputError: the worker's.
      KeyboardInterrupt: if Ctrl-C interrupted a DoFn. Other exceptions pass unchanged.
    """
    try:
        yield
    except Exception as error:
        if any(_INTERRUPTED.search(str(link)) for link in _chain(error)):
            raise KeyboardInterrupt from error
        found = _find_mark(error)
        if found is None:
            raise
        problem, remedy, path, line = json.loads(base64.b64decode(found))
        raise InputError(problem, remedy=remedy, path=path, line=line) from error


def _find_mark(error: BaseException) -> str | None:
    matches = (_MARK.search(str(link)) for link in _chain(error))
    return next((match[1] for match in matches if match), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
