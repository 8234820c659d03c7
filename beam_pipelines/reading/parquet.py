"""Reads Parquet files, part of a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.reading.clean_lines import nul_byte
from beam_pipelines.records.records import LANGUAGE_FIELD, Record, field_names, record_type_of
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile, language_in_name
from labse_tf.files.record_kinds import describe_fields
from labse_tf.languages import find_code

_ROWS_AT_ONCE = 10_000


def read_parquet(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the rows of a file with the columns of a kind: `text`, or `src_raw` and `tgt_raw`.

    A row without a value or with a NUL byte is replaced by an InputError.

    The language is that of the column `language_code`, else the file's. Unsupported codes are kept
    as they are.

    Raises:
      InputError: if the file is damaged or empty, or lacks a column.
    """
    try:
        parquet = pq.ParquetFile(stream)
        record_type = record_type_of(file.kind, parquet.schema_arrow.names)
        names = (*field_names(record_type), LANGUAGE_FIELD)
        _check_columns(parquet.schema_arrow, names, file)
        present = [name for name in names if name in parquet.schema_arrow.names]
        language = file.language or language_in_name(file.path)
        number = 0
        for table in parquet.iter_batches(_ROWS_AT_ONCE, columns=present):
            for row in _rows(table, names, language):
                number += 1
                *texts, given = row
                if None in row:
                    yield _empty(names[row.index(None)], number, file)
                elif any("\0" in text for text in texts):
                    yield nul_byte(file.path, f"row {number}")
                else:
                    code = find_code(given) or given
                    yield record_type(*(text.strip() for text in texts), code)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise InputError(
            f"the Parquet file cannot be read ({error})", path=file.path, remedy="write it again"
        ) from error
    if number == 0:
        raise InputError("the file has no rows", path=file.path, remedy="remove it or fill it")


def _rows(
    table: pa.RecordBatch, names: tuple[str, ...], language: str | None
) -> Iterator[tuple[str | None, ...]]:
    columns = [
        table.column(name).to_pylist() if name in table.schema.names else [language] * len(table)
        for name in names
    ]
    for *texts, code in zip(*columns, strict=True):
        yield (*texts, code or language)


def _check_columns(schema: pa.Schema, names: tuple[str, ...], file: CorpusFile) -> None:
    for name in names:
        if name == LANGUAGE_FIELD and name not in schema.names:
            if file.language or language_in_name(file.path):
                continue
            raise InputError(
                "has no column 'language_code' and its name gives no language",
                path=file.path,
                remedy="name it <lang>.parquet, or add the column",
            )
        if name not in schema.names:
            raise InputError(
                f"has no column '{name}'",
                path=file.path,
                remedy=describe_fields(),
            )
        type_ = schema.field(name).type
        if pa.types.is_dictionary(type_):
            type_ = type_.value_type
        if not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
            raise InputError(
                f"the column '{name}' holds {type_}, not text",
                path=file.path,
                remedy="write it as a column of strings",
            )


def _empty(name: str, number: int, file: CorpusFile) -> InputError:
    return InputError(
        f"row {number} has no value in the column '{name}'",
        path=file.path,
        remedy="fill it or leave the row out",
    )
