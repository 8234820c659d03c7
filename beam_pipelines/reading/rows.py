"""Makes records of rows: of Parquet, JSON lines and TFRecord files, ours and those of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from beam_pipelines.reading.clean_lines import nul_byte
from beam_pipelines.records.records import (
    Pair,
    Record,
    field_names,
    make_record,
    record_type_of,
)
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile, language_in_name
from labse_tf.files.record_kinds import BITEXT, ENGLISH
from labse_tf.languages import find_paper_code

# The column in which Hugging Face's data sets have a text of each language.
TRANSLATION = "translation"
# Others' names of the sides of pairs, and of the language of a record.
_SIDES = (("source", "target"), ("src", "tgt"))
LANGUAGE_FIELDS = ("language_code", "language", "lang")
# Indonesian, but mostly the number of a row.
_NUMBER = "id"

# The names of a record's texts, and the code of its language if these tell it.
Layout = tuple[tuple[str, ...], str | None]


def find_layouts(
    kind: str | None,
    names: Collection[str],
    find: Callable[[str], str | None] = find_paper_code,
) -> tuple[type[Record], list[Layout]]:
    """Returns the type of the records in rows with these fields, and where they are.

    Our own fields come first; then `source` and `target`; then a field for each language, by its
    code, English among them: a pair of English and every other one. The first is returned, too, if
    there are none of these.
    """
    record_type = record_type_of(kind, names)
    own = field_names(record_type)
    if not set(own) <= set(names) and kind in (None, BITEXT):
        for sides in _SIDES:
            if set(sides) <= set(names):
                return Pair, [(sides, None)]
        codes = {name: code for name in names if (code := find(name))}
        english = [name for name, code in codes.items() if code == ENGLISH]
        others = [name for name in codes if name not in english]
        if len(others) > 1 and _NUMBER in others and find is find_paper_code:
            others.remove(_NUMBER)
        if len(english) == 1 and others:
            return Pair, [((english[0], name), codes[name]) for name in others]
    return record_type, [(own, None)]


def default_language(file: CorpusFile) -> str | None:
    """Returns the language, for `make_record`, of records that tell none."""
    language = file.language or language_in_name(file.path)
    return f"{language}-{ENGLISH}" if language and file.swapped else language


def record_of(
    record_type: type[Record],
    values: Mapping[str, object],
    language: object,
    file: CorpusFile,
    *,
    place: str,
    line: int | None = None,
) -> Record | InputError:
    """Returns a record, or what is wrong with it.

    Args:
      record_type: its type.
      values: its texts, by the names of their columns.
      language: its language, or else that of the file.
      file: the file.
      place: where it is, for errors: "row 3".
      line: the line, likewise.
    """
    for name, value in (*values.items(), (LANGUAGE_FIELDS[0], language)):
        if not isinstance(value, str):
            problem = f"has no value in the column '{name}'"
            break
        if "\0" in value:
            return nul_byte(file.path, place, line)
    else:
        try:
            return make_record(record_type, list(values.values()), language)
        except ValueError as error:
            problem = str(error)
    return InputError(
        f"{place} {problem}", path=file.path, line=line, remedy="fill it or leave the row out"
    )
