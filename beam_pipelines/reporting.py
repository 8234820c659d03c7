"""How many records were read, kept, and dropped for each reason, with examples.

`report.json` counts unreadable input too: a line or record, or the rest of a damaged file.
`examples.md` shows random examples of dropped records, for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import apache_beam as beam

from beam_pipelines.records import (
    LANGUAGE_FIELD,
    UNDETERMINED,
    Record,
    build_record,
    decode_example,
    field_names,
    texts_of,
)
from beam_pipelines.runtime.shuffle import KeepSmallest, Keyed, random_number_of, smallest
from beam_pipelines.runtime.storage import write_file, write_json
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
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
_MAX_HELD = 1000
_ESCAPES = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": " ", "\r": " "})

# Path, line (0 if none), what is wrong.
Fault = tuple[str, int, str]
# A reason, and pairs of a random number and an example's fields.
Examples = tuple[str, list[Keyed]]
_Count = tuple[tuple[str, str], int]


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
            raise record if maximum == 0 else _too_many(bad.first, maximum)


def _too_many(first: Sequence[Fault], maximum: int) -> InputError:
    named = ", ".join(
        f"{path}:{line} ({problem})" if line else f"{path} ({problem})"
        for path, line, problem in first[:_MAX_NAMED]
    )
    problem = f"more than {maximum} records cannot be read: {named}"
    return InputError(problem, remedy="fetch these files again, or raise --max-bad-records")


def count_bad(bad: BadRecords) -> Iterator[_Count]:
    """Yields the counts of a file's bad records, as read and as dropped."""
    yield (bad.language, READ), bad.number
    yield (bad.language, BAD_RECORD), bad.number


def list_faults(bad: BadRecords) -> list[tuple[Fault, None]]:
    """Returns a file's first faults in the form that `WriteReport` takes."""
    return [(fault, None) for fault in bad.first]


def check_bad_records(report: dict, maximum: int) -> None:
    """Raises InputError if all files together have more bad records than the user allows."""
    if report["total"]["dropped"][BAD_RECORD] > maximum:
        faults = [(bad["file"], bad["line"] or 0, bad["problem"]) for bad in report["bad_records"]]
        raise _too_many(faults, maximum)


class Limit(Protocol):
    """The facts of a filter that the report states: its name is the reason."""

    name: str
    threshold: float


def list_reasons(filters: Sequence[Limit], *steps: str) -> list[str]:
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
    filters: Sequence[Limit],
    reasons: Sequence[str],
    facts: Sequence[str] = (),
):
    """(Counts, faults) -> `report.json` at `path`; see `build_report`.

    Counts are `((language, name), number)`; faults are from `list_faults`. The numbers are data of
    the pipeline, not metrics of the runner, which may count twice if a failed worker's work is
    repeated.
    """
    counts, faults = inputs
    first = faults | "First" >> beam.CombineGlobally(KeepSmallest(MAX_LISTED))
    languages, filters = sorted(set(languages)), list(filters)

    def write(counts: list[_Count], faults: list[tuple[Fault, None]]) -> None:
        first = [fault for fault, _ in faults]
        write_json(path, build_report(counts, languages, filters, first, reasons, facts))

    return (
        counts
        | "Sum" >> beam.CombinePerKey(sum)
        | "Gather" >> beam.combiners.ToList()
        | "Write" >> beam.Map(write, beam.pvalue.AsSingleton(first))
    )


def build_report(
    counts: Iterable[_Count],
    languages: Sequence[str],
    filters: Sequence[Limit],
    faults: Iterable[Fault] = (),
    reasons: Sequence[str] | None = None,
    facts: Sequence[str] = (),
) -> dict:
    """Returns `{"total": T, "languages": {language: T}, "thresholds": {filter name: limit}}`.

    "unchecked" has, for each language that some filters cannot judge, the names of these.

    T is `{"read": n, "kept": n, "dropped": {reason: n}}`, with each of `reasons`; if these are
    None, as from `list_reasons`. `facts` are the names of further counts in T. The languages are
    those given and those counted, which may include others than the paper's. The last key,
    "bad_records", lists the faults as `{"file": path, "line": n or None, "problem": text}`.

    Raises:
      RuntimeError: if read = kept + dropped does not hold, so that a record was lost.
    """
    summed = dict(counts)
    reasons = list_reasons(filters) if reasons is None else reasons
    shown = (READ, KEPT, *facts)
    rows = {
        language: {
            **{name: summed.get((language, name), 0) for name in shown},
            "dropped": {reason: summed.get((language, reason), 0) for reason in reasons},
        }
        for language in sorted({*languages, *(language for language, _ in summed)})
    }
    for language, row in rows.items():
        if row[READ] != row[KEPT] + sum(row["dropped"].values()):
            raise RuntimeError(f"records of '{language}' do not add up: {row}")
    dropped = [row["dropped"] for row in rows.values()]
    return {
        "total": {
            **{name: sum(row[name] for row in rows.values()) for name in shown},
            "dropped": {reason: sum(row[reason] for row in dropped) for reason in reasons},
        },
        "languages": rows,
        "thresholds": {filter_.name: filter_.threshold for filter_ in filters},
        "unchecked": _find_unchecked(rows, filters),
        "bad_records": [
            {"file": path, "line": line or None, "problem": problem}
            for path, line, problem in faults
        ],
    }


def _find_unchecked(languages: Iterable[str], filters: Sequence[Limit]) -> dict[str, list[str]]:
    judges = [filter_ for filter_ in filters if hasattr(filter_, "knows")]
    codes = [language for language in languages if is_code(language)]
    found = {
        code: [filter_.name for filter_ in judges if not filter_.knows(code)] for code in codes
    }
    return {code: names for code, names in found.items() if names}


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
        return reason, [
            (number, _describe(build_record(record_type, decode_example(example), None)))
            for number, example in smallest(self._drawn, self._size)
        ]


def _describe(record: Record) -> tuple[str, ...]:
    texts = (
        text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"
        for text in texts_of(record)
    )
    return record.language, *texts


@beam.ptransform_fn
def WriteExamples(
    examples, path: str, reasons: Sequence[str], record_type: type[Record], size: int
):
    """PCollection of `Examples` -> a Markdown file at `path`: a uniform sample for each reason.

    Equal records count once, so that a thousand empty lines are one example. `reasons` are all
    possible ones, in the order in which to list them; each has at most `size` examples.
    """
    return (
        examples
        | "Sample" >> beam.CombinePerKey(KeepSmallest(size))
        | "Gather" >> beam.combiners.ToList()
        | "Write"
        >> beam.Map(_write_examples, path, reasons, (LANGUAGE_FIELD, *field_names(record_type)))
    )


def _write_examples(
    examples: list[Examples], path: str, reasons: list[str], header: tuple[str, ...]
) -> None:
    found = dict(examples)
    lines = ["# Random examples of what was dropped", ""]
    for reason in reasons:
        if found.get(reason):
            rows = [header, ["---"] * len(header), *(fields for _, fields in found[reason])]
            cells = ([one.translate(_ESCAPES) for one in row] for row in rows)
            lines += [f"## {reason}", "", *(f"| {' | '.join(row)} |" for row in cells), ""]
    write_file(path, "\n".join(lines).encode("utf-8"))
