"""Reads Parquet files, part of a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.reading.rows import (
    LANGUAGE_FIELDS,
    TRANSLATION,
    default_language,
    find_layouts,
    records_of,
)
from beam_pipelines.records.records import Record
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.record_kinds import describe_fields

_ROWS_AT_ONCE = 10_000


def read_parquet(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file's rows as from `records_of`.

    Raises:
      InputError: if the file is damaged or empty, or lacks a column.
    """
    number = 0
    try:
        parquet = pq.ParquetFile(stream)
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=_columns(parquet, file)):
            for row in batch.to_pylist():
                number += 1
                yield from records_of(row, file, f"row {number}")
    except (pa.ArrowException, ValueError, OSError) as error:
        raise InputError(
            f"the Parquet file cannot be read ({error})", path=file.path, remedy="write it again"
        ) from error
    if number == 0:
        raise InputError("the file has no rows", path=file.path, remedy="remove it or fill it")


def _columns(parquet: pq.ParquetFile, file: CorpusFile) -> list[str]:
    """Returns the columns that the records need; raises InputError if one is missing."""
    columns, prefix = {one.name: one.type for one in parquet.schema_arrow}, ""
    if pa.types.is_struct(columns.get(TRANSLATION, pa.null())):
        columns, prefix = {one.name: one.type for one in columns[TRANSLATION]}, f"{TRANSLATION}."
    present = tuple(name for name, type_ in columns.items() if _is_text(type_))
    _, layouts = find_layouts(file.kind, present, bool(prefix))
    for name in layouts[0][0]:
        if name not in columns:
            raise InputError(f"has no column '{name}'", path=file.path, remedy=describe_fields())
        if name not in present:
            raise InputError(
                f"the column '{name}' holds {columns[name]}, not text",
                path=file.path,
                remedy="write it as a column of strings",
            )
    told = [name for name in LANGUAGE_FIELDS if name in present]
    if not (told or layouts[0][1] or default_language(file)):
        raise InputError(
            "has no column 'language_code' and its name gives no language",
            path=file.path,
            remedy="name it <lang>.parquet, or add the column",
        )
    needed = dict.fromkeys(chain(told, *(names for names, _ in layouts)))
    return [prefix + name for name in needed]


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)
