"""Filters that learn from the whole corpus before any record is filtered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apache_beam as beam

from beam_pipelines.filters import Filter


def learn(batches, filters: Sequence[Filter]) -> dict[str, beam.pvalue.AsDict]:
    """Returns side inputs: name of a filter that learns -> what it learns from these batches."""
    return {
        filter_.name: beam.pvalue.AsDict(batches | f"Learn {filter_.name}" >> filter_.learn())
        for filter_ in filters
        if hasattr(filter_, "learn")
    }


def teach(filters: Sequence[Filter], learned: Mapping[str, Mapping]) -> list[Filter]:
    """Returns the filters; those that learn are given what they learned."""
    return [
        filter_.with_learned(learned[filter_.name]) if filter_.name in learned else filter_
        for filter_ in filters
    ]
