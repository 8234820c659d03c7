"""Finds the corpus files at the paths that a user gives, and determines what each contains."""

from __future__ import annotations

import functools
import glob
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.outputs import PARTIAL_SUFFIX
from labse_tf.files.record_kinds import BITEXT, ENGLISH, KINDS, MONOLINGUAL, NEIGHBOURS
from labse_tf.files.storage import LOCAL, Storage
from labse_tf.files.textio import COMPRESSIONS
from labse_tf.languages import (
    find_code,
    find_pair,
    find_paper_code,
    find_wikipedia_code,
    is_locale,
    joins_two,
    require_code,
)

_log = logging.getLogger("labse")

# The folder in which a filter job writes scores; not a corpus.
SCORES = "scores"

TEXT, TSV, SHARD, MOSES, PARQUET, TFRECORD = "text", "tsv", "shard", "moses", "parquet", "tfrecord"
TMX, JSON_LINES, ZIP = "tmx", "jsonl", "zip"
WARC, WET, WIKIPEDIA = "warc", "wet", "wikipedia"
# The formats that training and evaluation read; others are converted to clean shards first.
PLAIN_FORMATS = (TEXT, TSV, SHARD, MOSES, TFRECORD)
ALL_FORMATS = (*PLAIN_FORMATS, PARQUET, TMX, JSON_LINES, ZIP)
# Pages of text, which only `labse corpus filter-monolingual` can split into sentences.
PAGE_FORMATS = (WARC, WET, WIKIPEDIA)

_WIKIPEDIA = re.compile(r"([a-z_]+)wiki-.*\.xml(-p\d+p\d+)?")
# Where the articles of a dump begin; no text.
_WIKIPEDIA_INDEX = re.compile(r"[a-z_]+wiki-.*-index\d*")
# Extensions of English sides, beside NAME.<lang>.
_ENGLISH_SIDES = ("en", "EN", "eng", "eng_Latn", "en_XX", "en_US", "en-US", "en_GB", "en-GB")
# OPUS-100's names: `opus.de-en-train.de`.
_PORTION = re.compile(r"-(train|dev|valid|test)\Z")
# Our own jobs write these beside corpora.
_NOT_CORPORA = ("report.json", "examples.md")
_EXAMPLES = 3


class CorpusFile(NamedTuple):
    """A file of text, or of pairs of English and another language.

    Attributes:
      path: its path; for a Moses pair, the path of the side that is not English.
      language: the paper's code; for bitext, that of the side that is not English. For Parquet,
        JSON_LINES and loose TFRECORD files, the default for records without a language, or None.
        None for TMX, ZIP, WARC and WET, whose content gives the language.
      kind: MONOLINGUAL, BITEXT or another key of `record_kinds.KINDS`; None if only the content of
        the file determines it.
      format: TEXT, TSV, SHARD, MOSES, PARQUET, TFRECORD, TMX, JSON_LINES, ZIP, WARC, WET or
        WIKIPEDIA.
      english_path: the English side of a Moses pair, else None.
      swapped: whether the first text of a pair is the one that is not English: `de-en.tsv`.
    """

    path: str
    language: str | None
    kind: str | None
    format: str
    english_path: str | None = None
    swapped: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Its path or, for a Moses pair, both paths."""
        return (self.path,) if self.english_path is None else (self.path, self.english_path)

    def moved(self, change: Callable[[str], str]) -> CorpusFile:
        """Returns the description of the same file under changed paths."""
        english = self.english_path and change(self.english_path)
        return self._replace(path=change(self.path), english_path=english)

    @property
    def tells_language(self) -> bool:
        """Whether records may state their own language, so that the file may have several."""
        return self.format in (PARQUET, TFRECORD, TMX, JSON_LINES, ZIP, WARC, WET)


def find_corpus_files(
    inputs: Iterable[str],
    *,
    kind: str | None = None,
    formats: tuple[str, ...] = ALL_FORMATS,
    storage: Storage = LOCAL,
    with_english: bool = True,
) -> list[CorpusFile]:
    """Returns the corpus files in `inputs` (files, folders, globs), sorted by path.

    Their names determine the format, whatever their case; text may be plain, .gz, .xz, .bz2 or
    .zst:

      <lang>.txt                                        monolingual, sentence or paragraph per line;
                                                        neighbours if `kind` says so: see
                                                        `textio.read_neighbours`
      <lang>.tsv                                        bitext, English<TAB>foreign
      [NAME.]<a>-<b>.tsv, [NAME.]<a>-<b>.txt            bitext in that order, one side English
      NAME.<a>-<b>.<a> and NAME.<a>-<b>.<b>             bitext, a Moses pair, one side English
      NAME.<lang> and NAME.en                           likewise
      NAME.tmx                                          bitext, one side English
      NAME.zip                                          any of these, as OPUS packs Moses pairs
      KIND/<lang>/*.tfrecord[.gz]                       clean shards of that kind
      NAME.parquet, <lang>.parquet                      any kind
      NAME.jsonl, <lang>.jsonl                          any kind, a JSON object a line
      NAME.tfrecord[.gz], <lang>.tfrecord[.gz]          any kind
      NAME.warc[.gz], NAME[.warc].wet[.gz]              monolingual, web pages
      <lang>wiki-NAME.xml[-p1p2][.bz2]                  monolingual, a dump of Wikipedia or a part

    Other files in a folder are ignored, and the log counts them; a file given by name must be one
    of these. A path is a glob only if there is no file of that name.

    Args:
      inputs: the paths that the user gave.
      kind: keep only files of this kind; files of unknown kind are assumed to be of it. None
        keeps all.
      formats: the formats that the caller can read.
      storage: where the paths are looked up.
      with_english: whether all bitext is with English.

    Raises:
      InputError: if a path does not exist, contains no corpus file, names an unknown language, two
        languages without English, or English for the other side of bitext, lacks the other side
        of a Moses pair, or has a format that the caller cannot read.
    """
    found: dict[str, CorpusFile] = {}
    unknown: list[str] = []
    for name in inputs:
        is_folder, described = _describe_all(name, storage)
        files = [file for file in described.values() if file is not None and _may_be(file, kind)]
        others = [path for path, file in described.items() if file is None]
        if not files and (is_folder or not others):
            raise InputError(
                f"holds no {kind or 'corpus'} files",
                path=name,
                remedy=f"expected {_expected(kind)}",
            )
        for file in files:
            found[file.path] = file._replace(kind=kind or file.kind)
            _check(found[file.path], formats, storage)
            if with_english and (kind or file.kind, file.language) == (BITEXT, ENGLISH):
                raise InputError(
                    "bitext of English with English",
                    path=file.path,
                    remedy="name it <lang>.tsv if English is first, or after both languages",
                )
        if not is_folder:
            unknown += others
        elif others := [
            path for path in others if not _is_side(path, files) and not _is_ours(path)
        ]:
            _log_ignored(name, len(others), tuple(others[:_EXAMPLES]))
    for path in unknown:
        if not _is_side(path, found.values()):
            raise InputError(
                "unknown kind of file", path=path, remedy=f"expected {_expected(None)}"
            )
    return [found[path] for path in sorted(found)]


def _is_side(path: str, files: Iterable[CorpusFile]) -> bool:
    """Whether it is the English side of a Moses pair, whose name alone does not tell that."""
    return any(path == file.english_path for file in files)


@functools.cache  # Jobs look for their files more than once.
def _log_ignored(folder: str, number: int, examples: Sequence[str]) -> None:
    names = ", ".join(os.path.basename(path) for path in examples)
    _log.info(
        "%s: not read: %d files of other formats or names, such as %s (docs/files.md)",
        folder,
        number,
        names,
    )


def find_plain_files(inputs: Iterable[str], **options: Any) -> list[CorpusFile]:
    """Same as `find_corpus_files` for PLAIN_FORMATS; the language of each file is known.

    Raises:
      InputError: as there, or if the name of a loose TFRECORD file contains no language, or has
        English second.
    """
    files = find_corpus_files(inputs, formats=PLAIN_FORMATS, **options)
    for file in files:
        if file.language is None or (file.format == TFRECORD and file.swapped):
            raise InputError(
                "its name does not give a language, with English first",
                path=file.path,
                remedy="name it <lang>.tfrecord, or make clean shards of it with "
                "`labse corpus filter-...`",
            )
    return files


def _may_be(file: CorpusFile, kind: str | None) -> bool:
    if kind == NEIGHBOURS and file.kind == MONOLINGUAL and file.format != SHARD:
        return True  # Text and pages, in whose order the sentences are.
    return kind is None or file.kind in (kind, None)


def _check(file: CorpusFile, formats: tuple[str, ...], storage: Storage) -> None:
    if file.format not in formats:
        raise InputError(
            f"is a file in the format '{file.format}', which only {_readers_of(file.format)}",
            path=file.path,
            remedy="make clean shards of it with `labse corpus filter-...` and use these",
        )
    for path in file.paths:
        if not storage.exists(path):
            raise InputError(
                "one side of a Moses pair without the other",
                path=next(other for other in file.paths if other != path),
                remedy=f"put {os.path.basename(path)} beside it",
            )


def _readers_of(format_: str) -> str:
    if format_ in PAGE_FORMATS:
        return "`labse corpus filter-monolingual` reads"
    return "`labse vocab build` and `labse corpus filter-...` read"


def _expected(kind: str | None) -> str:
    text, tsv, shards = "<lang>.txt[.gz]", "<lang>.tsv[.gz], en-<lang>.tsv", "<lang>/*.tfrecord.gz"
    moses, loose = "NAME.<lang> with NAME.en", "*.parquet, *.jsonl, *.tfrecord"
    if kind == MONOLINGUAL:
        pages = "*.warc.gz, *.warc.wet.gz, <lang>wiki-*.xml.bz2"
        return f"{text}, {loose}, {pages} or monolingual/{shards}"
    if kind == BITEXT:
        return f"{tsv}, {moses}, NAME.tmx[.gz], {loose} or bitext/{shards}"
    if kind == NEIGHBOURS:
        return f"{text}, {loose} or neighbours/{shards}"
    if kind is not None:
        return f"{loose} or {kind}/{shards}"
    kinds = ",".join(KINDS)
    return f"{text}, {tsv}, {moses}, NAME.tmx[.gz], {loose} or {{{kinds}}}/{shards}"


def _describe_all(name: str, storage: Storage) -> tuple[bool, dict[str, CorpusFile | None]]:
    """Returns whether `name` is a folder, and what each path is that it stands for."""
    name = storage.resolve(name)
    is_folder = storage.is_dir(name)
    if is_folder:
        # Files that a killed job left are no corpus.
        paths = [one for one in storage.walk(name) if f"{PARTIAL_SUFFIX}/" not in one[len(name) :]]
        present: Callable[[str], bool] = set(paths).__contains__
    else:
        present = storage.exists
        is_literal = present(name) or not glob.has_magic(name)
        paths = [name] if is_literal else storage.glob(name)
        if is_literal and not present(name):
            raise InputError("no such file or folder", path=name, remedy="check the path")
    return is_folder, {path: describe(path, present) for path in paths}


def _is_ours(path: str) -> bool:
    base = os.path.basename(path)
    return base in _NOT_CORPORA or base.startswith(".") or _has_scores(path)


def _has_scores(path: str) -> bool:
    return Path(path).parts[-3:-2] == (SCORES,)


def describe(path: str, present: Callable[[str], bool] = lambda path: False) -> CorpusFile | None:
    """Returns the description of a corpus file from its name alone; None for other files.

    Args:
      path: the file.
      present: whether there is a file: the English side `NAME.en` of `NAME.de`.

    Raises:
      InputError: if the name has the form of a corpus file but no known language code.
    """
    base, packing = split_compression(os.path.basename(path))
    stem, extension = os.path.splitext(base)
    format_, compression = extension.lower(), packing.lower()
    if format_ == ".txt" and _WIKIPEDIA_INDEX.fullmatch(stem):
        return None
    if format_ == ".tsv" or (format_ == ".txt" and _is_pair(stem)):
        language, swapped = _find_pair(stem) or (_only_language(stem, path), False)
        return CorpusFile(path, language, BITEXT, TSV, swapped=swapped)
    if format_ == ".txt":
        return CorpusFile(path, _only_language(stem, path), MONOLINGUAL, TEXT)
    if format_ == ".tmx":
        return CorpusFile(path, None, BITEXT, TMX)
    if format_ == ".zip" and not compression:
        return CorpusFile(path, None, None, ZIP)
    if format_ in (".jsonl", ".ndjson"):
        return _describe_loose(path, stem, JSON_LINES)
    if format_ == ".parquet" and not compression:
        return None if _has_scores(path) else _describe_loose(path, stem, PARQUET)
    if format_ == ".tfrecord" and compression in ("", ".gz"):
        folders = Path(path).parts[:-1]
        if len(folders) >= 2 and folders[-2] in KINDS:
            language = _only_language(folders[-1], path)
            return CorpusFile(path, language, folders[-2], SHARD)
        return _describe_loose(path, stem, TFRECORD)
    if format_ in (".warc", ".wet") and compression in ("", ".gz"):
        return CorpusFile(path, None, MONOLINGUAL, format_.removeprefix("."))
    if dump := _WIKIPEDIA.fullmatch(base):
        language = require_code(find_wikipedia_code(dump[1]) or dump[1], path=path)
        return CorpusFile(path, language, MONOLINGUAL, WIKIPEDIA)
    return _describe_moses(path, stem, extension.removeprefix("."), packing, present)


def language_in_name(path: str) -> str | None:
    """Returns the language of <lang>.parquet, de-en.parquet and the like, for records without one.

    `describe` takes no other language than the paper's from such a name: `raw.parquet` is rarely
    in Rawang.
    """
    base, _ = split_compression(os.path.basename(path))
    stem = os.path.splitext(base)[0]
    pair = _find_pair(stem)
    return pair[0] if pair else find_code(stem)


def _describe_loose(path: str, stem: str, format_: str) -> CorpusFile:
    code, swapped = _find_pair(stem) or (stem, False)
    return CorpusFile(path, find_paper_code(code), None, format_, swapped=swapped)


def _find_pair(stem: str) -> tuple[str, bool] | None:
    """Same as `find_pair` for `en-de`, or a part of a name with dots: `WikiMatrix.en-de`."""
    parts = (stem, *reversed(stem.split(".")))
    return next(filter(None, (find_pair(part) for part in parts)), None)


def _is_pair(stem: str) -> bool:
    """Whether `<stem>.txt` is bitext: `en-de`, but not `en-IN`."""
    return _find_pair(stem) is not None and not is_locale(stem.rpartition(".")[2])


def _only_language(name: str, path: str) -> str:
    """Returns the code in a name.

    Raises:
      InputError: if it is none, or may be two languages.
    """
    if joins_two(name):
        raise InputError(
            f"'{name}' may be two languages, or a language and a region",
            path=path,
            remedy="bitext needs English on one side; write a region in capitals, as in fr-CA, or "
            "leave it out",
        )
    return require_code(name, path=path)


def _describe_moses(
    path: str, stem: str, side: str, packing: str, present: Callable[[str], bool]
) -> CorpusFile | None:
    """Describes NAME.<a>-<b>.<side>, or NAME.<side> beside NAME.en; None for other names."""
    name, _, pair = stem.rpartition(".")
    pair = _PORTION.sub("", pair)

    def beside(start: str, other: str) -> str:
        return os.path.join(os.path.dirname(path), f"{start}.{other}{packing}")

    # Codes may contain hyphens.
    if not side or not name:
        other = None
    elif pair.startswith(f"{side}-"):
        other = pair.removeprefix(f"{side}-")
    else:
        other = pair.removesuffix(f"-{side}") if pair.endswith(f"-{side}") else None
    if other is None:
        # Other codes are mostly extensions: xml, log, bak.
        language = find_code(side) if stem and (find_paper_code(side) or "_" in side) else None
        if language in (None, ENGLISH):
            return None
        found = next(filter(present, (beside(stem, code) for code in _ENGLISH_SIDES)), None)
        return found and CorpusFile(path, language, BITEXT, MOSES, found)
    other_path = beside(stem, other)
    if find_code(side) == ENGLISH:
        return CorpusFile(other_path, require_code(other, path=path), BITEXT, MOSES, path)
    if find_code(other) == ENGLISH:
        return CorpusFile(path, require_code(side, path=path), BITEXT, MOSES, other_path)
    raise InputError(
        f"neither '{side}' nor '{other}' is English",
        path=path,
        remedy="use pairs of English and another language",
    )


def find_packed(path: str | os.PathLike[str]) -> str | None:
    """Returns the path of a file, or of the same file compressed; None if there is neither."""
    paths = (f"{os.fspath(path)}{compression}" for compression in ("", *COMPRESSIONS))
    return next((one for one in paths if os.path.isfile(one)), None)


def split_compression(base: str) -> tuple[str, str]:
    """Returns a file's name without the extension of its compression, and that extension or ""."""
    for compression in COMPRESSIONS:
        if base.lower().endswith(compression):
            return base[: -len(compression)], base[-len(compression) :]
    return base, ""
