"""How many records were read, kept, and dropped for each reason, with examples.

`report.json` counts unreadable input too: a line or record, or the rest of a damaged file.
`examples.md` shows random examples of dropped records, for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apache_beam as beam

from beam_pipelines.records import LANGUAGE_FIELD, Record, field_names, texts_of
from beam_pipelines.runtime.shuffle import KeepSmallest, Keyed, random_number_of, smallest
from beam_pipelines.runtime.storage import write_file, write_json
from labse_tf.errors import InputError
from labse_tf.languages import is_code, language_of

READ, KEPT, DUPLICATE = "read", "kept", "duplicate"
# The reasons for unreadable records, and for records beyond the maximum number per language.
BAD_RECORD, OVER_CAP = "bad_record", "over_cap"
# The reason for records whose language is unknown or not wanted.
OTHER_LANGUAGE = "other_language"

# The numbers of bad records in the report and in the error that ends the job, and of reasons in a
# line of the table.
MAX_LISTED, _MAX_NAMED, _REASONS_SHOWN = 100, 3, 3
# The start of a long text is enough to recognize it.
_MAX_CHARACTERS = 300
_ESCAPES = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": " ", "\r": " "})

# Path, line (0 if none), what is wrong.
Fault = tuple[str, int, str]
_Count = tuple[tuple[str, str], int]
# (language, READ, KEPT or a reason), number, examples as from `draw_examples`.
Counted = tuple[tuple[str, str], int, list[Keyed]]


class Limit(NamedTuple):
    """A reason to drop records. Filters are limits too: `Any` below stands for either."""

    name: str
    threshold: float


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

    def take_good(self, records: Iterable[Record | InputError], maximum: int) -> Iterator[Record]:
        """Yields the records and adds the errors among them.

        Raises:
          InputError: at the first error above the maximum.
        """
        for record in records:
            if not isinstance(record, InputError):
                yield record
                continue
            self.number += 1
            if len(self.first) < MAX_LISTED:
                self.first.append((record.path, record.line or 0, record.problem))
            if self.number > maximum:
                raise record if maximum == 0 else _too_many(self.first, maximum)


def _too_many(first: Sequence[Fault], maximum: int) -> InputError:
    named = ", ".join(
        f"{path}:{line} ({problem})" if line else f"{path} ({problem})"
        for path, line, problem in first[:_MAX_NAMED]
    )
    problem = f"more than {maximum} records cannot be read: {named}"
    return InputError(problem, remedy="fetch these files again, or raise --max-bad-records")


def check_bad_records(report: dict, maximum: int) -> None:
    """Raises InputError if all files together have more bad records than the user allows."""
    if report["total"]["dropped"][BAD_RECORD] > maximum:
        faults = [(bad["file"], bad["line"] or 0, bad["problem"]) for bad in report["bad_records"]]
        raise _too_many(faults, maximum)


def list_reasons(filters: Sequence[Any], *steps: str) -> list[str]:
    """Returns all reasons for which a record may be dropped, in the order of the checks.

    `steps` are the reasons of optional steps between the filters and the writing.
    """
    names = (filter_.name for filter_ in filters)
    # A name may occur twice: for lines of pages, and again for sentences.
    reasons = [BAD_RECORD, OTHER_LANGUAGE, *names, *steps, DUPLICATE, OVER_CAP]
    return list(dict.fromkeys(reasons))


@beam.ptransform_fn
def WriteReport(
    inputs,
    path: str,
    languages: Iterable[str],
    filters: Sequence[Any],
    reasons: Sequence[str],
    facts: Sequence[str] = (),
):
    """(Counts, PCollection of `BadRecords`) -> `report.json` at `path`; see `build_report`.

    Counts are `((language, name), number)`. The numbers are data of the pipeline, not metrics of
    the runner, which may count twice if a failed worker's work is repeated.
    """
    counts, bad = inputs
    first = (
        bad
        | "Faults" >> beam.Map(lambda bad: [(fault, None) for fault in bad.first])
        | "First" >> beam.CombineGlobally(KeepSmallest(MAX_LISTED))
    )
    languages, filters = sorted(set(languages)), list(filters)

    def write(counts: list[_Count], faults: list[tuple[Fault, None]]) -> None:
        first = [fault for fault, _ in faults]
        write_json(path, build_report(counts, languages, filters, first, reasons, facts))

    return (
        (counts, bad | "Count bad" >> beam.FlatMap(_count_bad))
        | "Counts" >> beam.Flatten()
        | "Sum" >> beam.CombinePerKey(sum)
        | "Gather" >> beam.combiners.ToList()
        | "Write" >> beam.Map(write, beam.pvalue.AsSingleton(first))
    )


def _count_bad(bad: BadRecords) -> Iterator[_Count]:
    yield (bad.language, READ), bad.number
    yield (bad.language, BAD_RECORD), bad.number


def build_report(
    counts: Iterable[_Count],
    languages: Sequence[str],
    filters: Sequence[Any],
    faults: Iterable[Fault],
    reasons: Sequence[str],
    facts: Sequence[str] = (),
) -> dict:
    """Returns `{"total": T, "languages": {language: T}, "thresholds": {filter name: limit}}`.

    "unchecked" has, for each language that some filters cannot judge, the names of these.

    T is `{"read": n, "kept": n, "dropped": {reason: n}}`, with each of `reasons`. `facts` are the
    names of further counts in T. The languages are those given and those counted, which may include
    others than the paper's. The last key, "bad_records", lists the faults as
    `{"file": path, "line": n or None, "problem": text}`.

    Raises:
      RuntimeError: if read = kept + dropped does not hold, so that a record was lost.
    """
    summed = dict(counts)
    languages = sorted({*languages, *(language for language, _ in summed)})
    for key in (*(READ, KEPT, *facts), *reasons):
        summed[None, key] = sum(summed.get((language, key), 0) for language in languages)
    total, *rows = (
        {
            **{name: summed.get((language, name), 0) for name in (READ, KEPT, *facts)},
            "dropped": {reason: summed.get((language, reason), 0) for reason in reasons},
        }
        for language in (None, *languages)
    )
    for language, row in zip(languages, rows, strict=True):
        if row[READ] != row[KEPT] + sum(row["dropped"].values()):
            raise RuntimeError(f"records of '{language}' do not add up: {row}")
    judges = [filter_ for filter_ in filters if hasattr(filter_, "knows")]
    unchecked = {
        language: [filter_.name for filter_ in judges if not filter_.knows(language)]
        for language in filter(is_code, languages)
    }
    return {
        "total": total,
        "languages": dict(zip(languages, rows, strict=True)),
        "thresholds": {filter_.name: filter_.threshold for filter_ in filters},
        "unchecked": {language: names for language, names in unchecked.items() if names},
        "bad_records": [
            {"file": path, "line": line or None, "problem": problem}
            for path, line, problem in faults
        ],
    }


def format_report(report: dict) -> str:
    """Returns one line per language with its most frequent reasons, and one for the total."""
    header = f"{'code':9}{'language':18}{'read':>14}{'kept':>14}{'kept %':>8}  dropped, mostly as"
    rule = "-" * len(header)
    rows = [
        _format_row(code, language_of(code).name if is_code(code) else "", row)
        for code, row in report["languages"].items()
    ]
    total = _format_row("", f"all {len(rows)}", report["total"])
    unchecked = [
        f"{code}: not checked, for want of knowledge of the language: {', '.join(names)}"
        for code, names in report.get("unchecked", {}).items()
    ]
    return "\n".join([header, rule, *rows, rule, total, *unchecked])


def _format_row(code: str, name: str, row: dict) -> str:
    share = f"{100 * row[KEPT] / row[READ]:.1f}" if row[READ] else "-"
    found = sorted((-number, reason) for reason, number in row["dropped"].items() if number)
    reasons = ", ".join(f"{reason} {-number:,}" for number, reason in found[:_REASONS_SHOWN])
    line = f"{code:9}{name:18.18}{row[READ]:>14,}{row[KEPT]:>14,}{share:>8}  {reasons}"
    return line.rstrip()


def draw_examples(records: Sequence[Record], size: int, seed: int) -> list[Keyed]:
    """Returns a sample of at most `size` different records: random numbers, and their fields."""
    if not size:
        return []
    numbered = ((random_number_of("\0".join(record).encode(), seed), record) for record in records)
    return [(number, describe_record(record)) for number, record in smallest(numbered, size)]


def describe_record(record: Record) -> tuple[str, ...]:
    """Returns the language and the texts, of which long ones are cut."""
    texts = (
        text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"
        for text in texts_of(record)
    )
    return record.language, *texts


@beam.ptransform_fn
def WriteExamples(counted, path: str, reasons: Sequence[str], record_type: type[Record], size: int):
    """PCollection of `Counted` -> a Markdown file at `path`: a uniform sample for each reason.

    Equal records count once, so that a thousand empty lines are one example. `reasons` are all
    possible ones, in the order in which to list them; each has at most `size` examples.
    """
    header = (LANGUAGE_FIELD, *field_names(record_type))
    return (
        counted
        | "Examples" >> beam.MapTuple(lambda key, _, examples: (key[1], examples))
        | "Sample" >> beam.CombinePerKey(KeepSmallest(size))
        | "Gather" >> beam.combiners.ToList()
        | "Write" >> beam.Map(_write_examples, path, reasons, header)
    )


def _write_examples(
    examples: list[tuple[str, list[Keyed]]], path: str, reasons: list[str], header: tuple[str, ...]
) -> None:
    found = dict(examples)
    lines = ["# Random examples of what was dropped", ""]
    for reason in reasons:
        if found.get(reason):
            rows = [header, ["---"] * len(header), *(fields for _, fields in found[reason])]
            cells = ([one.translate(_ESCAPES) for one in row] for row in rows)
            lines += [f"## {reason}", "", *(f"| {' | '.join(row)} |" for row in cells), ""]
    write_file(path, "\n".join(lines).encode("utf-8"))
