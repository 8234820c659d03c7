"""`report.json`: how many records were read, kept, and dropped for which reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines.filters import Filter

READ, KEPT, DUPLICATE = "read", "kept", "duplicate"
# The reason for records of languages that are none of the paper's.
OTHER_LANGUAGE = "other_language"

_Count = tuple[tuple[str, str], int]


class WriteReport(beam.PTransform):
    """PCollection of `((language, name), number)` -> `report.json` at `path`; see `build_report`.

    The numbers are data of the pipeline, not metrics of the runner: these may count the work of a
    worker that failed and was tried again twice.
    """

    def __init__(self, path: str, languages: Iterable[str], filters: Sequence[Filter]) -> None:
        super().__init__()
        self._path = path
        self._languages = sorted(set(languages))
        self._filters = list(filters)

    def expand(self, counts):
        return (
            counts
            | "Sum" >> beam.CombinePerKey(sum)
            | "Gather" >> beam.combiners.ToList()
            | "Write" >> beam.Map(_write, self._path, self._languages, self._filters)
        )


def _write(counts: list[_Count], path: str, languages: list[str], filters: list[Filter]) -> None:
    text = json.dumps(build_report(counts, languages, filters), indent=2) + "\n"
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(text.encode("utf-8"))


def build_report(counts: Iterable[_Count], languages: Sequence[str], filters: Sequence[Filter]):
    """Returns `{"total": T, "languages": {language: T}, "thresholds": {filter name: limit}}`.

    T is `{"read": n, "kept": n, "dropped": {reason: n}}`, with every reason that there is. The
    languages are those given and those counted, which may be others than the paper's.

    Raises:
      RuntimeError: if read = kept + dropped does not hold: a record was lost on the way.
    """
    summed = dict(counts)
    reasons = [OTHER_LANGUAGE, *(filter_.name for filter_ in filters)]
    # Those of steps that not every job has.
    reasons += sorted({name for _, name in summed} - {READ, KEPT, DUPLICATE, *reasons})
    reasons.append(DUPLICATE)
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
    return {"total": total, "languages": rows, "thresholds": thresholds}
