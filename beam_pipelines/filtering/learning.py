"""Filters that know the corpus: what they learn from all of it before any record is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apache_beam as beam

from beam_pipelines.filters import Filter


def learn(batches, filters: Sequence[Filter]) -> dict[str, beam.pvalue.AsDict]:
    """Returns side inputs: name of a filter that learns -> what it learns of these batches."""
    return {
        filter_.name: beam.pvalue.AsDict(batches | f"Learn {filter_.name}" >> filter_.learn())
        for filter_ in filters
        if hasattr(filter_, "learn")
    }


def teach(filters: Sequence[Filter], learned: Mapping[str, Mapping]) -> list[Filter]:
    """Returns the filters, those that learn with what they learned."""
    return [
        filter_.with_learned(learned[filter_.name]) if filter_.name in learned else filter_
        for filter_ in filters
    ]
