"""`report.json`: how many records were read, kept, and dropped for which reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines.bad_records import MAX_LISTED, Fault
from beam_pipelines.filters import AnyFilter
from beam_pipelines.smallest import KeepSmallest

READ, KEPT, DUPLICATE = "read", "kept", "duplicate"
# The reasons for what cannot be read, and for what goes beyond the most records of a language.
BAD_RECORD, OVER_CAP = "bad_record", "over_cap"
# The reason for records of languages that are none of the paper's.
OTHER_LANGUAGE = "other_language"

_Count = tuple[tuple[str, str], int]


def list_reasons(filters: Sequence[AnyFilter], *steps: str) -> list[str]:
    """Returns all reasons for which a record may be dropped, in the order that they are checked.

    `steps` are the reasons of steps that not every job has, between the filters and the writing.
    """
    names = (filter_.name for filter_ in filters)
    # One name may serve twice: for lines of pages, and again for sentences.
    reasons = [BAD_RECORD, OTHER_LANGUAGE, *names, *steps, DUPLICATE, OVER_CAP]
    return list(dict.fromkeys(reasons))


class WriteReport(beam.PTransform):
    """(Counts, faults) -> `report.json` at `path`; see `build_report`.

    Counts are `((language, name), number)`, faults the first that the files had, in lists of
    (place, fault).

    The numbers are data of the pipeline, not metrics of the runner: these may count the work of a
    worker that failed and was tried again twice.
    """

    def __init__(
        self,
        path: str,
        languages: Iterable[str],
        filters: Sequence[AnyFilter],
        steps: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._steps = list(steps)
        self._path = path
        self._languages = sorted(set(languages))
        self._filters = list(filters)

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
                self._steps,
                beam.pvalue.AsSingleton(first),
            )
        )


def _write(
    counts: list[_Count],
    path: str,
    languages: list[str],
    filters: list[AnyFilter],
    steps: list[str],
    faults: list[tuple[Fault, None]],
) -> None:
    report = build_report(counts, languages, filters, [fault for fault, _ in faults], steps)
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(text.encode("utf-8"))


def build_report(
    counts: Iterable[_Count],
    languages: Sequence[str],
    filters: Sequence[AnyFilter],
    faults: Iterable[Fault] = (),
    steps: Sequence[str] = (),
) -> dict:
    """Returns `{"total": T, "languages": {language: T}, "thresholds": {filter name: limit}}`.

    T is `{"read": n, "kept": n, "dropped": {reason: n}}`, with every reason of `list_reasons`. The
    languages are those given and those counted, which may be others than the paper's. The fourth
    key, "bad_records", lists the faults as `{"file": path, "line": n or None, "problem": text}`.

    Raises:
      RuntimeError: if read = kept + dropped does not hold: a record was lost on the way.
    """
    summed = dict(counts)
    reasons = list_reasons(filters, *steps)
    rows = {
        language: {
            READ: summed.get((language, READ), 0),
            KEPT: summed.get((language, KEPT), 0),
            "dropped": {reason: summed.get((language, reason), 0) for reason in reasons},
        }
        for language in sorted({*languages, *(language for language, _ in summed)})
    }
    for language, row in rows.items():
        if row[READ] != row[KEPT] + sum(row["dropped"].values()):
            raise RuntimeError(f"records of '{language}' do not add up: {row}")
    total = {
        READ: sum(row[READ] for row in rows.values()),
        KEPT: sum(row[KEPT] for row in rows.values()),
        "dropped": {
            reason: sum(row["dropped"][reason] for row in rows.values()) for reason in reasons
        },
    }
    thresholds = {filter_.name: filter_.threshold for filter_ in filters}
    bad = [
        {"file": path, "line": line or None, "problem": problem} for path, line, problem in faults
    ]
    return {"total": total, "languages": rows, "thresholds": thresholds, "bad_records": bad}
