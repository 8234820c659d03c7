"""Finds the filters in the folder `filters`, in systems and of the user; builds those of a job."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beam_pipelines import filters
from beam_pipelines.filters import RECORDS, STAGES, AnyFilter, Option, divide_models
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import KINDS
from labse_tf.registry import find, find_object, is_object_name, registered


def find_filters(kind: str) -> list[type[AnyFilter]]:
    """Returns the filters for a kind of records, in the order in which they are applied."""

    def place(filter_):
        use = filter_.uses[kind]
        return STAGES.index(use.stage), use.order, filter_.name

    return sorted((found for found in _all_filters() if kind in found.uses), key=place)


def _all_filters() -> Iterator[type[AnyFilter]]:
    for file in pkgutil.walk_packages(filters.__path__, f"{filters.__name__}."):
        module = importlib.import_module(file.name)
        for value in vars(module).values():
            # A file may import another filter, which is found in its own file.
            if inspect.isclass(value) and value.__module__ == file.name and hasattr(value, "uses"):
                yield value
    yield from (find("FILTERS", name) for name, _ in registered("FILTERS"))


def options_of(filter_: type[AnyFilter], kind: str) -> list[Option]:
    """Returns a filter's options, with the default threshold of its class filled in."""
    use = filter_.uses[kind]
    options = [] if use.asked_by is None else [use.asked_by]
    if (limit := use.threshold) is not None:
        default = getattr(filter_, "threshold", None) if limit.default is None else limit.default
        options.append(limit._replace(default=default))
    return options


def take_options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Removes the values of all filters' options from a job's keywords and returns them."""
    keywords = [o.keyword for found in find_filters(kind) for o in options_of(found, kind)]
    return {keyword: options.pop(keyword) for keyword in keywords if keyword in options}


def build_filters(
    kind: str,
    values: Mapping[str, Any] | None = None,
    *,
    stage: str = RECORDS,
    from_scores: bool = False,
) -> list[AnyFilter]:
    """Returns the filters of one of STAGES, in the order in which they are applied.

    `values` are those of options by keyword; None or a missing keyword stands for the default.
    """
    built, values = [], values or {}
    for filter_ in find_filters(kind):
        use = filter_.uses[kind]
        if use.stage != stage:
            continue
        threshold = None if use.threshold is None else values.get(use.threshold.keyword)
        asked = True if use.asked_by is None else values.get(use.asked_by.keyword)
        if hasattr(filter_, "from_options"):
            built.append(filter_.from_options(asked, threshold, from_scores=from_scores))
        elif asked:
            if threshold is None and use.threshold is not None:
                threshold = use.threshold.default
            arguments = [one for one in (asked, threshold) if one is not None and one is not True]
            built.append(filter_(*arguments))
    return [filter_ for filter_ in built if filter_ is not None]


def add_user_filters(
    built: Sequence[AnyFilter], names: Sequence[str], *, taken: Sequence[str]
) -> list[AnyFilter]:
    """Returns a job's own filters and the user's, as they are applied: models last.

    Raises:
      InputError: if a user's filter cannot be found or built, is not a filter, or has the name of
        another filter, of a column, or one of `taken`.
    """
    known = {*taken, *(field for kind in KINDS.values() for field in kind.fields)}
    known.update(filter_.name for filter_ in (*built, *_all_filters()))
    own = []
    for name in names:
        filter_ = _load(name)
        if filter_.name in known:
            problem = f"its name, the reason '{filter_.name}' in report.json, is taken"
            raise InputError(problem, path=name, remedy="give it another 'name'")
        known.add(filter_.name)
        own.append(filter_)
    others, models = divide_models(built)
    return [*others, *own, *models]


def _load(name: str) -> AnyFilter:
    def error(problem: str) -> InputError:
        remedy = "see 'A filter of your own' in docs/corpora.md"
        return InputError(problem, path=name, remedy=remedy)

    place, mark, text = name.partition("=")
    if not is_object_name(place):
        raise error("is not module:attribute[=threshold]")
    found: Any = find_object(place)
    # Worker processes get this path too, so that they find the user's module.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        arguments = [int(text) if text.lstrip("-").isdigit() else float(text)] if mark else []
    except ValueError:
        raise error(f"its threshold '{text}' is not a number") from None
    try:
        found = found(*arguments) if mark or callable(found) else found
    except Exception as problem:  # The user's code may raise any exception.
        raise error(f"cannot be built ({type(problem).__name__}: {problem})") from problem
    reason = getattr(found, "name", None)
    if not isinstance(reason, str) or not reason.isidentifier():
        raise error(f"its 'name', the reason in report.json, is {reason!r}, not one word")
    if not isinstance(getattr(found, "threshold", None), int | float):
        raise error("has no numeric 'threshold'")
    score, model, accept = (
        callable(getattr(found, one, None)) for one in ("score", "scoring_step", "accept")
    )
    if not (accept and (score or model)):
        raise error("has no method 'score', or none 'accept'")
    return found
