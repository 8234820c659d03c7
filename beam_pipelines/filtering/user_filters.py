"""User-defined filters, named as `module:attribute` or `module:attribute=threshold`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from beam_pipelines.filtering.duplicate_spans import DUPLICATE_SPAN
from beam_pipelines.filtering.prepare_text import MISSING_TEXT, UNCERTAIN_LANGUAGE
from beam_pipelines.filtering.scores import REASON
from beam_pipelines.filtering.unique_sides import DUPLICATE_SIDE
from beam_pipelines.filters import AnyFilter, ModelFilter
from beam_pipelines.records.records import LANGUAGE_FIELD
from beam_pipelines.reporting.report import KEPT, READ, list_reasons
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import KINDS
from labse_tf.registry import find_object, is_object_name

# Names of the other counts in reports, and of columns of the score files.
_RESERVED = (
    *(READ, KEPT, UNCERTAIN_LANGUAGE, MISSING_TEXT),
    *list_reasons([], DUPLICATE_SPAN, DUPLICATE_SIDE),
    *(LANGUAGE_FIELD, REASON),
    *(field for kind in KINDS.values() for field in kind.fields),
)
_HOW = "see 'A filter of your own' in docs/corpora.md"


def add_user_filters(
    built: Sequence[AnyFilter], names: Sequence[str], *, taken: Sequence[AnyFilter] = ()
) -> list[AnyFilter]:
    """Returns a job's filters in the order in which they are applied: the user's before models.

    Args:
      built: the job's own filters.
      names: names of the user's filters.
      taken: further filters whose names the user's filters must not have.

    Raises:
      InputError: if a filter cannot be found or built, is not a filter, or has a name that is
        taken.
    """
    known = {*_RESERVED, *(filter_.name for filter_ in (*built, *taken))}
    own = []
    for name in names:
        filter_ = _load(name)
        if filter_.name in known:
            raise InputError(
                f"its name, the reason '{filter_.name}' in report.json, is taken",
                path=name,
                remedy="give it another 'name'",
            )
        known.add(filter_.name)
        own.append(filter_)
    models = [filter_ for filter_ in built if isinstance(filter_, ModelFilter)]
    others = [filter_ for filter_ in built if filter_ not in models]
    return [*others, *own, *models]


def _load(name: str) -> AnyFilter:
    place, mark, text = name.partition("=")
    if not is_object_name(place):
        raise InputError(
            "is not the name of a filter", path=name, remedy="give module:attribute[=threshold]"
        )
    found = find_object(place)
    # Worker processes get this path too, so that they find the user's module.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    filter_ = _build(found, [_number(text, name)] if mark else [], name)
    _check(filter_, name)
    return filter_


def _number(text: str, name: str) -> float:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise InputError(
            f"its threshold '{text}' is not a number", path=name, remedy="give one, such as =0.5"
        ) from None


def _build(found: Any, arguments: Sequence[float], name: str) -> Any:
    if not callable(found):
        if arguments:
            raise InputError(
                "is an object whose threshold is already set",
                path=name,
                remedy="name its class, or leave out the threshold",
            )
        return found
    try:
        return found(*arguments)
    except Exception as error:  # The user's code may raise any exception.
        raise InputError(
            f"cannot be built ({type(error).__name__}: {error})", path=name, remedy=_HOW
        ) from error


def _check(filter_: Any, name: str) -> None:
    reason = getattr(filter_, "name", None)
    if not isinstance(reason, str) or not reason.isidentifier():
        raise InputError(
            f"its 'name', the reason in report.json, is {reason!r}",
            path=name,
            remedy="set it to one word, such as 'too_loud'",
        )
    if not isinstance(getattr(filter_, "threshold", None), int | float):
        raise InputError("has no numeric 'threshold'", path=name, remedy=_HOW)
    if not callable(getattr(filter_, "accept", None)):
        raise InputError("has no method 'accept'", path=name, remedy=_HOW)
    if not any(callable(getattr(filter_, method, None)) for method in ("score", "scoring_step")):
        raise InputError("has no method 'score'", path=name, remedy=_HOW)
