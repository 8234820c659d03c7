"""Makes sentences from pages and paragraphs: language, C4's heuristics, line lengths, splitting.

The heuristics are those of Raffel et al. 2019, section 2.2. They drop, in this order, lines of a
page by their language, whole pages, lines, and pages of which little is left. C4's list of bad
words is not used (there is none of good quality for 109 languages), nor is its search for citation
marks (they are removed with Wikipedia's markup). Then lines are dropped by their length (LaBSE,
section 3.1), before they are split, so that all pieces of a line are kept or dropped together. Each
filter declares its stage, see `beam_pipelines.filters`.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import apache_beam as beam

from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filters import Filter, find_reasons
from beam_pipelines.records.records import HOLE, UNDETERMINED, Batch, Document, Record, Sentence
from beam_pipelines.reporting.report import OTHER_LANGUAGE, READ
from beam_pipelines.text.sentences import split_sentences
from labse_tf.files.record_kinds import Neighbours
from labse_tf.languages import LANGUAGES
from labse_tf.tokenization.language_id import identify

# The reason for lines whose language is identified with too little confidence.
UNCERTAIN_LANGUAGE = "uncertain_language"
# The reason for sentences with a HOLE, and how it is shown among the examples.
MISSING_TEXT, _SHOWN = "missing_text", "{{…}}"

# Consecutive sentences of a page, or of a line that was split.
Passage = list[Sentence]
# Reason -> sentences, or neighbours; of these the second text is empty if a line was dropped.
Dropped = Mapping[str, list[Sentence] | list[Neighbours]]


class TextSettings(NamedTuple):
    """How pages and lines become sentences.

    Attributes:
      min_language_confidence: 0 to 1; lines of web pages whose language is less probable are
        dropped.
      split_sentences: make each sentence a record. None: split pages, but not lines.
      c4: apply the filters for pages, lines and rests. None: to pages, but not to lines.
      page_filters: applied to whole pages as they are read, and to lines that are not in a page.
      line_filters: applied to the lines that these leave.
      rest_filters: applied to what is then left of pages, but not to other lines.
      length_filters: applied to all lines that are then left, with C4's heuristics or without.
      neighbours: make records of two sentences that follow one another in a page.
    """

    min_language_confidence: float = 0.5
    split_sentences: bool | None = None
    c4: bool | None = None
    page_filters: tuple[Filter, ...] = ()
    line_filters: tuple[Filter, ...] = ()
    rest_filters: tuple[Filter, ...] = ()
    length_filters: tuple[Filter, ...] = ()
    neighbours: bool = False

    @property
    def concerns_lines(self) -> bool:
        """Whether input lines, not only pages, have to be processed."""
        return bool(self.split_sentences or self.c4)


class _Line:
    """A line of a page, its pieces, and the reason if it is dropped."""

    __slots__ = ("language", "page", "pieces", "reason", "text")

    def __init__(self, page: int, text: str, language: str) -> None:
        self.page = page
        self.text = text
        self.language = language
        self.pieces: list[str] = []
        self.reason: str | None = None


class PrepareText(beam.PTransform):
    """PCollection of `Batch` -> (batches of sentences, lists of passages, counts, examples).

    Sentences from a common text (a page, or a line that is split) are returned as passages, others
    and neighbours in batches. Counts are `((language, name), number)` of what is dropped, where
    name is the reason or READ. They count sentences, or lines if these are not split. Examples are
    drawn as in `ApplyFilters`.
    """

    def __init__(self, settings: TextSettings, options: JobOptions) -> None:
        super().__init__()
        self._prepare = _Prepare(settings, options)

    def expand(self, batches):
        outputs = batches | beam.ParDo(self._prepare).with_outputs(
            "passages", "counts", "examples", main="batches"
        )
        return outputs.batches, outputs.passages, outputs.counts, outputs.examples


class _Prepare(beam.DoFn):
    def __init__(self, settings: TextSettings, options: JobOptions) -> None:
        self._settings = settings
        self._options = options

    def process(self, batch: Batch) -> Iterator:
        if isinstance(batch.records[0], Neighbours):
            # Read as such from lines, beside pages.
            kept, dropped = _drop_by_length(batch, self._settings)
            yield from by_language([kept])
        else:
            passages, dropped = prepare(batch, self._settings)
            yield from self._emit(batch, passages)
        for count in count_dropped(dropped).items():
            yield beam.pvalue.TaggedOutput("counts", count)
        yield from self._options.draw_examples(dropped)

    def _emit(self, batch: Batch, passages: list[Passage]) -> Iterator:
        if self._settings.neighbours:
            yield from by_language(map(find_neighbours, passages))
        elif _is_split(batch, self._settings) or isinstance(batch.records[0], Document):
            if passages:
                yield beam.pvalue.TaggedOutput("passages", passages)
        else:
            yield from by_language(passages)


def count_dropped(dropped: Dropped) -> collections.Counter[tuple[str, str]]:
    """Returns `(language, reason)` and `(language, READ)` -> number."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for reason, sentences in dropped.items():
        for sentence in sentences:
            counts[sentence.language, reason] += 1
            counts[sentence.language, READ] += 1
    return counts


def by_language(groups: Iterable[Iterable[Record]]) -> Iterator[Batch]:
    """Yields one batch per language."""
    batches: dict[str, list[Record]] = collections.defaultdict(list)
    for record in itertools.chain.from_iterable(groups):
        batches[record.language].append(record)
    for language, records in batches.items():
        yield Batch(language, records)


def find_neighbours(passage: Passage) -> list[Neighbours]:
    """Returns the pairs of adjacent sentences in one language."""
    return [
        Neighbours(one.text, other.text, one.language)
        for one, other in itertools.pairwise(passage)
        if one.language == other.language
    ]


def prepare(batch: Batch, settings: TextSettings) -> tuple[list[Passage], Dropped]:
    """Returns the passages of pages and lines, and what is dropped.

    A page is a passage, without its dropped lines; with `neighbours`, these end a passage.
    """
    are_pages = isinstance(batch.records[0], Document)
    lines = [
        _Line(page, text, batch.language)
        for page, record in enumerate(batch.records)
        for text in (_lines_of(record) if are_pages else (record.text,))
    ]
    if batch.language == UNDETERMINED:
        _identify(lines, settings)
    is_split = _is_split(batch, settings)
    for line in lines:
        line.pieces = split_sentences(line.text, line.language) if is_split else [line.text]
    lines = [part for line in lines for part in _without_holes(line)]
    if are_pages if settings.c4 is None else settings.c4:
        _apply_page_filters(settings.page_filters, batch, lines)
        _apply_line_filters(settings.line_filters, lines)
        # A line that is not in a page has few sentences anyway.
        if are_pages:
            _apply_rest_filters(settings.rest_filters, lines)
    _apply_line_filters(settings.length_filters, lines)
    collect = _collect_runs if settings.neighbours else _collect_kept
    dropped = _collect_dropped(lines)
    if settings.neighbours:
        # Of the job's kind, for its examples.
        dropped = {
            reason: [Neighbours(one.text, "", one.language) for one in sentences]
            for reason, sentences in dropped.items()
        }
    return collect(lines), dropped


def _without_holes(line: _Line) -> list[_Line]:
    """Returns the line, or what is left of it and what is dropped, as lines of their own."""
    if HOLE not in line.text:
        return [line]
    parts = []
    for has_hole, pieces in itertools.groupby(line.pieces, lambda piece: HOLE in piece):
        whole = [piece.replace(HOLE, _SHOWN) for piece in pieces]
        parts.append(_Line(line.page, " ".join(whole), line.language))
        parts[-1].pieces = whole
        parts[-1].reason = MISSING_TEXT if has_hole else line.reason
    return parts


def _drop_by_length(batch: Batch, settings: TextSettings) -> tuple[list[Neighbours], Dropped]:
    kept: list[Neighbours] = []
    dropped: dict[str, list[Neighbours]] = collections.defaultdict(list)
    for record, reason in zip(
        batch.records, find_reasons(settings.length_filters, batch.records), strict=True
    ):
        (kept if reason is None else dropped[reason]).append(record)
    return kept, dropped


def _is_split(batch: Batch, settings: TextSettings) -> bool:
    if settings.split_sentences is None:
        return isinstance(batch.records[0], Document)
    return settings.split_sentences


def _lines_of(document: Document) -> list[str]:
    lines = (line.strip() for line in document.text.split("\n"))
    return [line for line in lines if line]


def _identify(lines: Sequence[_Line], settings: TextSettings) -> None:
    for line, (language, probability) in zip(
        lines, identify([line.text for line in lines]), strict=True
    ):
        line.language = language or UNDETERMINED
        if language not in LANGUAGES:
            line.reason = OTHER_LANGUAGE
        elif probability < settings.min_language_confidence:
            line.reason = UNCERTAIN_LANGUAGE


def _apply_page_filters(filters: Sequence[Filter], batch: Batch, lines: Sequence[_Line]) -> None:
    reasons = find_reasons(filters, batch.records)
    for line in lines:
        line.reason = line.reason or reasons[line.page]


def _apply_line_filters(filters: Sequence[Filter], lines: Sequence[_Line]) -> None:
    for language, group in _grouped(lines, lambda line: line.language).items():
        reasons = find_reasons(filters, [Sentence(line.text, language) for line in group])
        for line, reason in zip(group, reasons, strict=True):
            line.reason = reason


def _apply_rest_filters(filters: Sequence[Filter], lines: Sequence[_Line]) -> None:
    pages = list(_grouped(lines, lambda line: line.page).values())
    rests = [Document("\n".join(line.text for line in page), page[0].language) for page in pages]
    for page, reason in zip(pages, find_reasons(filters, rests), strict=True):
        for line in page:
            line.reason = reason


def _grouped(lines: Sequence[_Line], key: Callable[[_Line], object]) -> dict[object, list[_Line]]:
    """Returns the lines that have not been dropped, grouped by key."""
    groups: dict[object, list[_Line]] = collections.defaultdict(list)
    for line in lines:
        if line.reason is None:
            groups[key(line)].append(line)
    return groups


def _collect_kept(lines: Sequence[_Line]) -> list[Passage]:
    return [
        [Sentence(piece, line.language) for line in page for piece in line.pieces]
        for page in _grouped(lines, lambda line: line.page).values()
    ]


def _collect_runs(lines: Sequence[_Line]) -> list[Passage]:
    def run(line: _Line) -> tuple[int, bool]:
        return line.page, line.reason is None

    return [
        [Sentence(piece, line.language) for line in group for piece in line.pieces]
        for (_, is_kept), group in itertools.groupby(lines, run)
        if is_kept
    ]


def _collect_dropped(lines: Sequence[_Line]) -> Dropped:
    dropped: Dropped = collections.defaultdict(list)
    for line in lines:
        if line.reason is not None:
            dropped[line.reason] += [Sentence(piece, line.language) for piece in line.pieces]
    return dropped
