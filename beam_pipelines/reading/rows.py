"""Reads lines, and rows of JSON lines and Parquet files, ours and those of others."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.records import Pair, Record, field_names, make_record, record_type_of
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import CorpusFile, language_in_name
from labse_tf.files.record_kinds import BITEXT, ENGLISH, describe_fields
from labse_tf.languages import find_code, find_paper_code

# The column in which Hugging Face's data sets have a text of each language.
TRANSLATION = "translation"
# Others' names of the sides of pairs, and of the language of a record.
_SIDES = (("source", "target"), ("src", "tgt"))
LANGUAGE_FIELDS = ("language_code", "language", "lang")
# Indonesian, but mostly the number of a row.
_NUMBER = "id"
_ROWS_AT_ONCE = 10_000

# The names of a record's texts, and the code of its language if these tell it.
Layout = tuple[tuple[str, ...], str | None]


def clean_lines(stream: BinaryIO, name: str) -> textio.Lines:
    """Like `textio.lines_and_errors`, but a line with a NUL byte is also replaced by an error."""
    for number, line in textio.lines_and_errors(stream, name):
        if not isinstance(line, InputError) and "\0" in line:
            line = nul_byte(name, "the line", number)
        yield number, line


def nul_byte(path: str, place: str, line: int | None = None) -> InputError:
    remedy = "remove it or fetch the file again"
    return InputError(f"{place} holds a NUL byte", path=path, line=line, remedy=remedy)


def read_json_lines(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file with an object a line; empty lines are passed over."""
    for number, line in clean_lines(stream, file.path):
        if isinstance(line, InputError):
            yield line
        elif line.strip():
            try:
                row = json.loads(line)
                if "\\ud" in line.lower():  # Refuses half a surrogate pair.
                    json.dumps(row, ensure_ascii=False).encode()
            except (ValueError, RecursionError) as error:
                yield _bad(f"is not JSON ({error})", file, "the line", number)
                continue
            if isinstance(row, dict):
                yield from _records_of(row, file, "the line", number)
            else:
                yield _bad("is not a JSON object", file, "the line", number)


def read_parquet(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file's rows as from `_records_of`."""
    number = 0
    try:
        parquet = pq.ParquetFile(stream)
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=_columns(parquet, file)):
            for row in batch.to_pylist():
                number += 1
                yield from _records_of(row, file, f"row {number}")
    except (pa.ArrowException, ValueError, OSError) as error:
        problem = f"the Parquet file cannot be read ({error})"
        raise InputError(problem, path=file.path, remedy="write it again") from error
    if number == 0:
        raise InputError("the file has no rows", path=file.path, remedy="remove it or fill it")


def _columns(parquet: pq.ParquetFile, file: CorpusFile) -> list[str]:
    """Returns the columns that the records need; raises InputError if one is missing."""
    columns, prefix = {one.name: one.type for one in parquet.schema_arrow}, ""
    if pa.types.is_struct(columns.get(TRANSLATION, pa.null())):
        columns, prefix = {one.name: one.type for one in columns[TRANSLATION]}, f"{TRANSLATION}."
    present = tuple(name for name, type_ in columns.items() if _is_text(type_))
    _, layouts = _find_layouts(file.kind, present, bool(prefix))
    for name in layouts[0][0]:
        if name not in columns:
            raise InputError(f"has no column '{name}'", path=file.path, remedy=describe_fields())
        if name not in present:
            problem = f"the column '{name}' holds {columns[name]}, not text"
            raise InputError(problem, path=file.path, remedy="write it as a column of strings")
    told = [name for name in LANGUAGE_FIELDS if name in present]
    if not (told or layouts[0][1] or default_language(file)):
        problem = "has no column 'language_code' and its name gives no language"
        remedy = "name it <lang>.parquet, or add the column"
        raise InputError(problem, path=file.path, remedy=remedy)
    needed = dict.fromkeys(chain(told, *(names for names, _ in layouts)))
    return [prefix + name for name in needed]


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _records_of(
    row: Mapping[str, Any], file: CorpusFile, place: str, line: int | None = None
) -> Iterator[Record | InputError]:
    """Yields the records of a row at a place and line, see `_find_layouts`, or what is wrong.

    Fields of a `translation` are read in place of the row's; one of several translations may be
    missing. The language is that of one of LANGUAGE_FIELDS, else the file's.
    """
    within = isinstance(row.get(TRANSLATION), dict)
    row = row[TRANSLATION] if within else row
    record_type, layouts = _find_layouts(file.kind, tuple(row), within)
    told = next((row[name] for name in LANGUAGE_FIELDS if row.get(name)), default_language(file))
    for names, code in layouts:
        texts = [row.get(name) for name in names]
        if len(layouts) > 1 and texts[1] is None and texts[0] is not None:
            continue  # The other languages have this row.
        language = code or told
        values = dict(zip((*names, LANGUAGE_FIELDS[0]), (*texts, language), strict=True))
        missing = [name for name, value in values.items() if not isinstance(value, str)]
        if missing:
            yield _bad(f"has no value in the column '{missing[0]}'", file, place, line)
        elif any("\0" in value for value in values.values()):
            yield nul_byte(file.path, place, line)
        else:
            try:
                record = make_record(record_type, texts, language)
            except ValueError as error:
                record = _bad(str(error), file, place, line)
            yield record


@functools.lru_cache(maxsize=1024)
def _find_layouts(
    kind: str | None, names: tuple[str, ...], within: bool
) -> tuple[type[Record], list[Layout]]:
    """Returns the type of the records in rows with these fields, and where they are.

    Our own fields come first; then `source` and `target`; then a field for each language, by its
    code, English among them: a pair of English and every other one. The first is returned, too, if
    there are none of these. If they are `within` a translation, any language's code is one.
    """
    record_type = record_type_of(kind, names)
    own = field_names(record_type)
    if not set(own) <= set(names) and kind in (None, BITEXT):
        for sides in _SIDES:
            if set(sides) <= set(names):
                return Pair, [(sides, None)]
        find = find_code if within else find_paper_code
        codes = {name: code for name in names if (code := find(name))}
        english = [name for name, code in codes.items() if code == ENGLISH]
        others = [name for name in codes if name not in english]
        if len(others) > 1 and _NUMBER in others and not within:
            others.remove(_NUMBER)
        if len(english) == 1 and others:
            return Pair, [((english[0], name), codes[name]) for name in others]
    return record_type, [(own, None)]


@functools.lru_cache(maxsize=1024)
def default_language(file: CorpusFile) -> str | None:
    """Returns the language, for `make_record`, of records that tell none."""
    language = file.language or language_in_name(file.path)
    return f"{language}-{ENGLISH}" if language and file.swapped else language


def _bad(problem: str, file: CorpusFile, place: str, line: int | None) -> InputError:
    remedy = "fill it or leave it out"
    return InputError(f"{place} {problem}", path=file.path, line=line, remedy=remedy)
