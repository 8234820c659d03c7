"""Reads JSON lines: an object a line, with the fields of a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from beam_pipelines.reading.clean_lines import clean_lines
from beam_pipelines.reading.rows import (
    LANGUAGE_FIELDS,
    TRANSLATION,
    default_language,
    find_layouts,
    record_of,
)
from beam_pipelines.records.records import Record
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import find_code, find_paper_code


def read_json_lines(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file; see `find_layouts`. An invalid one is replaced by an error.

    Fields of a `translation` are read in place of the object's. The language is that of the field
    `language_code`, `language` or `lang`, else the file's. Empty lines are passed over.

    Raises:
      InputError: if the file is damaged or empty.
    """
    default = default_language(file)
    for number, line in clean_lines(stream, file.path):
        if isinstance(line, InputError):
            yield line
        elif line.strip():
            try:
                row = json.loads(line)
                if "\\ud" in line.lower():  # Refuses half a surrogate pair.
                    json.dumps(row, ensure_ascii=False).encode()
            except (ValueError, RecursionError) as error:
                yield _bad(f"is not JSON ({error})", number, file)
                continue
            if not isinstance(row, dict):
                yield _bad("is not a JSON object", number, file)
                continue
            find = find_paper_code
            if isinstance(row.get(TRANSLATION), dict):
                row, find = row[TRANSLATION], find_code
            record_type, layouts = find_layouts(file.kind, row, find)
            told = next((row[name] for name in LANGUAGE_FIELDS if row.get(name)), default)
            for fields, code in layouts:
                texts = {name: row.get(name) for name in fields}
                yield record_of(
                    record_type, texts, code or told, file, place="the line", line=number
                )


def _bad(problem: str, line: int, file: CorpusFile) -> InputError:
    return InputError(
        f"the line {problem}", path=file.path, line=line, remedy="fill it or remove it"
    )
