"""`report.json`: how many records were read, kept, and dropped for each reason; and its table.

Unreadable input is counted too: a line or record, or the rest of a damaged file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import apache_beam as beam

from beam_pipelines.records.records import UNDETERMINED, Record
from beam_pipelines.runtime.hashes import KeepSmallest
from beam_pipelines.runtime.storage import write_json
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import is_code, language_of

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


READ, KEPT, DUPLICATE = "read", "kept", "duplicate"
# The reasons for unreadable records, and for those beyond the maximum number per language.
BAD_RECORD, OVER_CAP = "bad_record", "over_cap"
# The reason for records whose language is unknown or not wanted.
OTHER_LANGUAGE = "other_language"

_Count = tuple[tuple[str, str], int]


class Limit(Protocol):
    """What the report states about a filter: its name, which is the reason, and its threshold."""

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


class WriteReport(beam.PTransform):
    """(Counts, faults) -> `report.json` at `path`; see `build_report`.

    Counts are `((language, name), number)`; faults are the first ones of each file, in the form of
    `list_faults`.

    The numbers are data of the pipeline, not metrics of the runner, which may count twice if a
    failed worker's work is repeated.
    """

    def __init__(
        self,
        path: str,
        languages: Iterable[str],
        filters: Sequence[Limit],
        reasons: Sequence[str],
        facts: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._path = path
        self._languages = sorted(set(languages))
        self._filters = list(filters)
        self._reasons = list(reasons)
        self._facts = list(facts)

    def expand(self, inputs):
        counts, faults = inputs
        first = faults | "First" >> beam.CombineGlobally(KeepSmallest(MAX_LISTED))
        return (
            counts
            | "Sum" >> beam.CombinePerKey(sum)
            | "Gather" >> beam.combiners.ToList()
            | "Write"
            >> beam.Map(
                _write,
                self._path,
                self._languages,
                self._filters,
                self._reasons,
                self._facts,
                beam.pvalue.AsSingleton(first),
            )
        )


def _write(
    counts: list[_Count],
    path: str,
    languages: list[str],
    filters: list[Limit],
    reasons: list[str],
    facts: list[str],
    faults: list[tuple[Fault, None]],
) -> None:
    first = [fault for fault, _ in faults]
    write_json(path, build_report(counts, languages, filters, first, reasons, facts))


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
    None, with those of `list_reasons`. `facts` are the names of further counts in T. The languages
    are those given and those counted, which may include others than the paper's. The last key,
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
    total = {
        **{name: sum(row[name] for row in rows.values()) for name in shown},
        "dropped": {
            reason: sum(row["dropped"][reason] for row in rows.values()) for reason in reasons
        },
    }
    thresholds = {filter_.name: filter_.threshold for filter_ in filters}
    bad = [
        {"file": path, "line": line or None, "problem": problem} for path, line, problem in faults
    ]
    return {
        "total": total,
        "languages": rows,
        "thresholds": thresholds,
        "unchecked": find_unchecked(rows, filters),
        "bad_records": bad,
    }


def find_unchecked(languages: Iterable[str], filters: Sequence[Limit]) -> dict[str, list[str]]:
    """Returns the names of the filters that cannot judge a language, for those with any."""
    judges = [filter_ for filter_ in filters if hasattr(filter_, "knows")]
    codes = [language for language in languages if is_code(language)]
    found = {
        code: [filter_.name for filter_ in judges if not filter_.knows(code)] for code in codes
    }
    return {code: names for code, names in found.items() if names}


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
        raise too_many(faults, maximum)


# As many as fit on a line; `report.json` has all.
_REASONS_SHOWN = 3


def format_report(report: dict) -> str:
    """Returns one line per language with its most frequent reasons, and one for the total."""
    header = f"{'code':9}{'language':18}{'read':>14}{'kept':>14}{'kept %':>8}  dropped, mostly as"
    rule = "-" * len(header)
    rows = [
        _format_row(code, language_of(code).name if is_code(code) else "", row)
        for code, row in report["languages"].items()
    ]
    total = _format_row("", f"all {len(rows)}", report["total"])
    return "\n".join([header, rule, *rows, rule, total, *_unchecked(report)])


def _unchecked(report: dict) -> list[str]:
    return [
        f"{code}: not checked, for want of knowledge of the language: {', '.join(names)}"
        for code, names in report.get("unchecked", {}).items()
    ]


def _format_row(code: str, name: str, row: dict) -> str:
    share = f"{100 * row[KEPT] / row[READ]:.1f}" if row[READ] else "-"
    found = sorted((-number, reason) for reason, number in row["dropped"].items() if number)
    reasons = ", ".join(f"{reason} {-number:,}" for number, reason in found[:_REASONS_SHOWN])
    line = f"{code:9}{name:18.18}{row[READ]:>14,}{row[KEPT]:>14,}{share:>8}  {reasons}"
    return line.rstrip()
