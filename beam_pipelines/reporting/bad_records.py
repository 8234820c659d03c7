"""Counts unreadable input: a line or record, or the rest of a damaged file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from beam_pipelines.records.records import UNDETERMINED, Record
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile

# How many are listed in the report, and how many in the error that ends the job.
MAX_LISTED = 100
_MAX_NAMED = 3

# Path, line (0 if none), what is wrong.
Fault = tuple[str, int, str]


@dataclass
class BadRecords:
    """The bad records of one file.

    Attributes:
      language: the file's, or UNDETERMINED.
      number: how many there are.
      first: the first MAX_LISTED of them.
    """

    language: str
    number: int = 0
    first: list[Fault] = field(default_factory=list)

    @classmethod
    def of_file(cls, file: CorpusFile) -> BadRecords:
        return cls(file.language or UNDETERMINED)

    def add(self, error: InputError) -> None:
        self.number += 1
        if len(self.first) < MAX_LISTED:
            self.first.append((error.path, error.line or 0, error.problem))


def take_good(
    records: Iterable[Record | InputError], bad: BadRecords, maximum: int
) -> Iterator[Record]:
    """Yields the records and adds the errors among them to `bad`.

    Raises:
      InputError: at the first error above the maximum.
    """
    for record in records:
        if not isinstance(record, InputError):
            yield record
            continue
        bad.add(record)
        if bad.number > maximum:
            raise record if maximum == 0 else too_many(bad.first, maximum)


def too_many(first: Sequence[Fault], maximum: int) -> InputError:
    """Returns the error for more bad records than the user allows; it names the first of them."""
    named = ", ".join(
        f"{describe_place(path, line)} ({problem})" for path, line, problem in first[:_MAX_NAMED]
    )
    return InputError(
        f"more than {maximum} records cannot be read: {named}",
        remedy="fetch these files again, or raise --max-bad-records",
    )


def describe_place(path: str, line: int) -> str:
    """Returns `FILE:LINE`, or `FILE` if the line is 0."""
    return f"{path}:{line}" if line else path
