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
    """Marks InputErrors in the body of a DoFn."""
    try:
        yield
    except InputError as error:
        facts = json.dumps([error.problem, error.remedy, error.path, error.line])
        mark = base64.b64encode(facts.encode()).decode()
        raise RuntimeError(f"{error} [labse-input-error:{mark}]") from None


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C is the cause of an error, perhaps in a worker."""
    chain = _chain(error)
    return any(isinstance(one, KeyboardInterrupt) or _INTERRUPTED.search(str(one)) for one in chain)


def find_cause(error: BaseException) -> InputError | None:
    """Returns the InputError that a worker marked, from the error that a runner raised."""
    return next(filter(None, (find_input_error(str(one)) for one in _chain(error))), None)


def find_input_error(text: str) -> InputError | None:
    """Returns the InputError whose mark is in an engine's message."""
    if (mark := _MARK.search(text)) is None:
        return None
    problem, remedy, path, line = json.loads(base64.b64decode(mark[1]))
    return InputError(problem, remedy=remedy, path=path, line=line)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
