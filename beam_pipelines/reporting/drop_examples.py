"""`examples.md`: random examples of dropped records, for each reason."""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam

from beam_pipelines.records.records import (
    LANGUAGE_FIELD,
    Record,
    build_record,
    field_names,
    texts_of,
)
from beam_pipelines.records.tf_example import decode_example
from beam_pipelines.runtime.hashes import KeepSmallest, Keyed, random_number_of, smallest
from beam_pipelines.runtime.storage import write_file

# The start of a long text is enough to recognize it.
_MAX_CHARACTERS = 300
_MAX_HELD = 1000
_ESCAPES = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": " ", "\r": " "})

# A reason, and pairs of a random number and an example's fields.
Examples = tuple[str, list[Keyed]]


def draw_examples(reason: str, records: Sequence[Record], size: int, seed: int) -> Examples:
    """Returns a sample of at most `size` different records that were dropped for this reason."""
    numbered = ((random_number_of("\0".join(record).encode(), seed), record) for record in records)
    return reason, [(number, _describe(record)) for number, record in smallest(numbered, size)]


class ExampleSample:
    """Draws a sample of serialized records, added one by one, in constant memory."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._drawn: list[Keyed] = []

    def add(self, example: bytes) -> None:
        if not self._size:
            return
        self._drawn.append((random_number_of(example, self._seed), example))
        if len(self._drawn) > _MAX_HELD + self._size:
            self._drawn = smallest(self._drawn, self._size)

    def describe(self, reason: str, record_type: type[Record]) -> Examples:
        """Returns the sample, in the form that `draw_examples` returns."""
        drawn = smallest(self._drawn, self._size)
        return reason, [
            (number, _describe(build_record(record_type, decode_example(example), None)))
            for number, example in drawn
        ]


def _describe(record: Record) -> tuple[str, ...]:
    return record.language, *map(_cut, texts_of(record))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"


class WriteExamples(beam.PTransform):
    """PCollection of `Examples` -> a Markdown file at `path`: a uniform sample for each reason.

    Equal records count once, so that a thousand empty lines are one example.

    Args:
      path: the file to write.
      reasons: all possible reasons, in the order in which to list them.
      record_type: the type of a row of `record_kinds.KINDS`.
      size: the maximum number of examples per reason.
    """

    def __init__(
        self, path: str, reasons: Sequence[str], record_type: type[Record], size: int
    ) -> None:
        super().__init__()
        self._path = path
        self._reasons = list(reasons)
        self._header = (LANGUAGE_FIELD, *field_names(record_type))
        self._size = size

    def expand(self, examples):
        return (
            examples
            | "Sample" >> beam.CombinePerKey(KeepSmallest(self._size))
            | "Gather" >> beam.combiners.ToList()
            | "Write" >> beam.Map(_write, self._path, self._reasons, self._header)
        )


def _write(
    examples: list[Examples], path: str, reasons: list[str], header: tuple[str, ...]
) -> None:
    found = dict(examples)
    lines = ["# Random examples of what was dropped", ""]
    for reason in reasons:
        if found.get(reason):
            rows = [fields for _, fields in found[reason]]
            lines += [f"## {reason}", "", *map(_format_row, [header, ["---"] * len(header), *rows])]
            lines.append("")
    write_file(path, "\n".join(lines).encode("utf-8"))


def _format_row(fields: Sequence[str]) -> str:
    return f"| {' | '.join(field.translate(_ESCAPES) for field in fields)} |"
