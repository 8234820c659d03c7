"""Finds the corpus files at the paths that a user gives, and determines what each contains."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.record_kinds import BITEXT, ENGLISH, KINDS, MONOLINGUAL, NEIGHBOURS
from labse_tf.files.storage import LOCAL, Storage
from labse_tf.files.textio import COMPRESSIONS
from labse_tf.languages import find_code, find_paper_code, require_code

# The folder in which a filter job writes scores; not a corpus.
SCORES = "scores"

TEXT, TSV, SHARD, MOSES, PARQUET, TFRECORD = "text", "tsv", "shard", "moses", "parquet", "tfrecord"
TMX = "tmx"
WARC, WET, WIKIPEDIA = "warc", "wet", "wikipedia"
# The formats that training and evaluation read; others are converted to clean shards first.
PLAIN_FORMATS = (TEXT, TSV, SHARD, MOSES, TFRECORD)
ALL_FORMATS = (*PLAIN_FORMATS, PARQUET, TMX)
# Pages of text, which only `labse corpus filter-monolingual` can split into sentences.
PAGE_FORMATS = (WARC, WET, WIKIPEDIA)

_WIKIPEDIA = re.compile(r"([a-z_]+)wiki-.*\.xml")


class CorpusFile(NamedTuple):
    """A file of text, or of pairs of English and another language.

    Attributes:
      path: its path; for a Moses pair, the path of the side that is not English.
      language: the paper's code; for bitext, that of the side that is not English. For Parquet and
        loose TFRECORD files, the default for records without a language, or None. None for TMX,
        WARC and WET, whose content gives the language.
      kind: MONOLINGUAL, BITEXT or another key of `record_kinds.KINDS`; None if only the content of
        the file determines it.
      format: TEXT, TSV, SHARD, MOSES, PARQUET, TFRECORD, TMX, WARC, WET or WIKIPEDIA.
      english_path: the English side of a Moses pair, else None.
    """

    path: str
    language: str | None
    kind: str | None
    format: str
    english_path: str | None = None

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
        return self.format in (PARQUET, TFRECORD, TMX, WARC, WET)


def find_corpus_files(
    inputs: Iterable[str],
    *,
    kind: str | None = None,
    formats: tuple[str, ...] = ALL_FORMATS,
    storage: Storage = LOCAL,
) -> list[CorpusFile]:
    """Returns the corpus files in `inputs` (files, folders, globs), sorted by path.

    Their names determine the format; text may be plain, .gz, .xz, .bz2 or .zst:

      <lang>.txt                                        monolingual, sentence or paragraph per line;
                                                        neighbours if `kind` says so: see
                                                        `textio.read_neighbours`
      <lang>.tsv                                        bitext, English<TAB>foreign
      NAME.<a>-<b>.<a> and NAME.<a>-<b>.<b>             bitext, a Moses pair, one side English
      NAME.tmx                                          bitext, one side English
      KIND/<lang>/*.tfrecord[.gz]                       clean shards of that kind
      NAME.parquet, <lang>.parquet                      any kind
      NAME.tfrecord[.gz], <lang>.tfrecord[.gz]          any kind
      NAME.warc[.gz], NAME[.warc].wet[.gz]              monolingual, web pages
      <lang>wiki-NAME.xml[.bz2]                         monolingual, a dump of Wikipedia

    Other files in a folder are ignored; a file given by name must be one of these.

    Args:
      inputs: the paths that the user gave.
      kind: keep only files of this kind; files of unknown kind are assumed to be of it. None
        keeps all.
      formats: the formats that the caller can read.
      storage: where the paths are looked up.

    Raises:
      InputError: if a path does not exist, contains no corpus file, names an unknown language,
        lacks the other side of a Moses pair, or has a format that the caller cannot read.
    """
    found: dict[str, CorpusFile] = {}
    for name in inputs:
        files = [file for file in _describe_all(name, storage) if _may_be(file, kind)]
        if not files:
            raise InputError(
                f"holds no {kind or 'corpus'} files",
                path=name,
                remedy=f"expected {_expected(kind)}",
            )
        for file in files:
            _check(file, formats, storage)
            found[file.path] = file._replace(kind=kind or file.kind)
    return [found[path] for path in sorted(found)]


def find_plain_files(
    inputs: Iterable[str], *, kind: str | None = None, storage: Storage = LOCAL
) -> list[CorpusFile]:
    """Same as `find_corpus_files` for PLAIN_FORMATS; the language of each file is known.

    Raises:
      InputError: as there, or if the name of a loose TFRECORD file contains no language.
    """
    files = find_corpus_files(inputs, kind=kind, formats=PLAIN_FORMATS, storage=storage)
    for file in files:
        if file.language is None:
            raise InputError(
                "its name does not give a language",
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
    text, tsv, shards = "<lang>.txt[.gz]", "<lang>.tsv[.gz]", "<lang>/*.tfrecord.gz"
    moses, loose = "NAME.<lang>-en.<lang>", "*.parquet, *.tfrecord"
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


def _describe_all(name: str, storage: Storage) -> list[CorpusFile]:
    name = storage.resolve(name)
    if storage.is_dir(name):
        return [file for path in storage.walk(name) if (file := describe(path)) is not None]
    paths = storage.glob(name) if glob.has_magic(name) else [name]
    files = []
    for path in paths:
        if not storage.exists(path):
            raise InputError("no such file or folder", path=path, remedy="check the path")
        file = describe(path)
        if file is None:
            raise InputError(
                "unknown kind of file", path=path, remedy=f"expected {_expected(None)}"
            )
        files.append(file)
    return files


def describe(path: str) -> CorpusFile | None:
    """Returns the description of a corpus file from its name alone; None for other files.

    Raises:
      InputError: if the name has the form of a corpus file but no known language code.
    """
    base, compression = split_compression(os.path.basename(path))
    stem, extension = os.path.splitext(base)
    if extension == ".txt":
        return CorpusFile(path, require_code(stem, path=path), MONOLINGUAL, TEXT)
    if extension == ".tsv":
        return CorpusFile(path, require_code(stem, path=path), BITEXT, TSV)
    if extension == ".tmx":
        return CorpusFile(path, None, BITEXT, TMX)
    if extension == ".parquet" and not compression:
        if Path(path).parts[-3:-2] == (SCORES,):
            return None
        return CorpusFile(path, find_paper_code(stem), None, PARQUET)
    if extension == ".tfrecord" and compression in ("", ".gz"):
        folders = Path(path).parts[:-1]
        if len(folders) >= 2 and folders[-2] in KINDS:
            return CorpusFile(path, require_code(folders[-1], path=path), folders[-2], SHARD)
        return CorpusFile(path, find_paper_code(stem), None, TFRECORD)
    if extension in (".warc", ".wet") and compression in ("", ".gz"):
        return CorpusFile(path, None, MONOLINGUAL, extension.removeprefix("."))
    if dump := _WIKIPEDIA.fullmatch(base):
        return CorpusFile(path, require_code(dump[1], path=path), MONOLINGUAL, WIKIPEDIA)
    return _describe_moses(path, stem, extension.removeprefix("."), compression)


def language_in_name(path: str) -> str | None:
    """Returns the language of <lang>.parquet or <lang>.tfrecord[.gz], for records that tell none.

    `describe` takes no other language than the paper's from such a name: `raw.parquet` is rarely
    in Rawang.
    """
    base, _ = split_compression(os.path.basename(path))
    return find_code(os.path.splitext(base)[0])


def _describe_moses(path: str, stem: str, side: str, compression: str) -> CorpusFile | None:
    """Describes NAME.<a>-<b>.<side>; None for other names. Codes may contain hyphens."""
    name, _, pair = stem.rpartition(".")
    if not name or not side:
        return None
    if pair.startswith(f"{side}-"):
        other = pair.removeprefix(f"{side}-")
    elif pair.endswith(f"-{side}"):
        other = pair.removesuffix(f"-{side}")
    else:
        return None
    other_path = os.path.join(os.path.dirname(path), f"{name}.{pair}.{other}{compression}")
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
        if base.endswith(compression):
            return base.removesuffix(compression), compression
    return base, ""
