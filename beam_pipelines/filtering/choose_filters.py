"""Finds the filters in the folder `filters` and in systems, and builds those that a job needs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

from beam_pipelines import filters
from beam_pipelines.filters import RECORDS, STAGES, AnyFilter, Option, Use
from labse_tf.registry import find, registered


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
    """Returns a filter's options, with the defaults of its constructor filled in."""
    use = filter_.uses[kind]
    options = [] if use.asked_by is None else [use.asked_by]
    if use.threshold is not None:
        options.append(use.threshold._replace(default=_default(filter_, use.threshold)))
    return options


def _default(filter_: type[AnyFilter], threshold: Option) -> float | None:
    if threshold.default is not None:
        return threshold.default
    default = inspect.signature(filter_).parameters["threshold"].default
    return None if default is inspect.Parameter.empty else default


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
    """Returns the filters of one stage, in the order in which they are applied.

    Args:
      kind: of records.
      values: keyword of an option -> its value; None or a missing keyword stands for the default.
      stage: one of STAGES.
      from_scores: use existing scores, see `JobOptions`.
    """
    values = values or {}
    built = []
    for found in find_filters(kind):
        use = found.uses[kind]
        if use.stage == stage:
            built.append(_build(found, use, values, from_scores=from_scores))
    return [filter_ for filter_ in built if filter_ is not None]


def _build(
    filter_: type[AnyFilter], use: Use, values: Mapping[str, Any], *, from_scores: bool
) -> AnyFilter | None:
    threshold = None if use.threshold is None else values.get(use.threshold.keyword)
    asked = True if use.asked_by is None else values.get(use.asked_by.keyword)
    if hasattr(filter_, "from_options"):
        return filter_.from_options(asked, threshold, from_scores=from_scores)
    if not asked:
        return None
    if threshold is None and use.threshold is not None:
        threshold = _default(filter_, use.threshold)
    arguments = () if asked is True else (asked,)
    return filter_(*arguments) if threshold is None else filter_(*arguments, threshold)
