"""Reads Parquet files, part of a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

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
from labse_tf.files.record_kinds import describe_fields
from labse_tf.languages import find_code, find_paper_code

_ROWS_AT_ONCE = 10_000


def read_parquet(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file's rows, whose columns are as in `find_layouts`.

    A row without a value or with a NUL byte is replaced by an InputError. A translation that a row
    of several lacks is left out.

    The language is that of the column `language_code`, `language` or `lang`, else the file's.
    Unsupported codes are kept as they are.

    Raises:
      InputError: if the file is damaged or empty, or lacks a column.
    """
    try:
        parquet = pq.ParquetFile(stream)
        types, find = {one.name: one.type for one in parquet.schema_arrow}, find_paper_code
        within = pa.types.is_struct(types.get(TRANSLATION, pa.null()))
        if within:
            types, find = {one.name: one.type for one in types[TRANSLATION]}, find_code
        present = [name for name, type_ in types.items() if _is_text(type_)]
        record_type, layouts = find_layouts(file.kind, present, find)
        told = next((name for name in LANGUAGE_FIELDS if name in present), None)
        default = default_language(file)
        _check_columns(types, layouts[0][0], file)
        if default is None and told is None and layouts[0][1] is None:
            raise InputError(
                "has no column 'language_code' and its name gives no language",
                path=file.path,
                remedy="name it <lang>.parquet, or add the column",
            )
        names = [*dict.fromkeys(name for fields, _ in layouts for name in fields)]
        names += [told] if told else []
        paths = [f"{TRANSLATION}.{name}" if within else name for name in names]
        number = 0
        for table in parquet.iter_batches(_ROWS_AT_ONCE, columns=paths):
            if within:
                table = pa.RecordBatch.from_struct_array(table.column(TRANSLATION))
            values = {name: table.column(name).to_pylist() for name in names}
            for row in range(len(table)):
                number += 1
                language = (told and values[told][row]) or default
                for fields, code in layouts:
                    texts = {name: values[name][row] for name in fields}
                    if len(layouts) == 1 or None not in texts.values():
                        place = f"row {number}"
                        yield record_of(record_type, texts, code or language, file, place=place)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise InputError(
            f"the Parquet file cannot be read ({error})", path=file.path, remedy="write it again"
        ) from error
    if number == 0:
        raise InputError("the file has no rows", path=file.path, remedy="remove it or fill it")


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _check_columns(types: dict[str, pa.DataType], names: tuple[str, ...], file: CorpusFile) -> None:
    for name in names:
        if name not in types:
            raise InputError(f"has no column '{name}'", path=file.path, remedy=describe_fields())
        if not _is_text(types[name]):
            raise InputError(
                f"the column '{name}' holds {types[name]}, not text",
                path=file.path,
                remedy="write it as a column of strings",
            )
