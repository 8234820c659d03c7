"""Makes sentences of pages and paragraphs: language identification, C4's heuristics, splitting.

The heuristics are those of Raffel et al. 2019, section 2.2, in this order: what is dropped of a
page for its language, then whole pages, then lines, then pages of which little is left. C4's list
of bad words is left out: there is none of good quality for 109 languages.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import apache_beam as beam

from beam_pipelines.filters import Filter, find_reasons
from beam_pipelines.filters.curly_bracket import CurlyBracket
from beam_pipelines.filters.few_sentences import FewSentences
from beam_pipelines.filters.few_words import FewWords
from beam_pipelines.filters.javascript import Javascript
from beam_pipelines.filters.lorem_ipsum import LoremIpsum
from beam_pipelines.filters.no_terminal_punctuation import NoTerminalPunctuation
from beam_pipelines.language_id import IDENTIFIABLE, identify, is_compatible
from beam_pipelines.records import UNDETERMINED, Batch, Document, Sentence
from beam_pipelines.report import OTHER_LANGUAGE, READ
from beam_pipelines.sentences import split_sentences
from labse_tf.languages import LANGUAGES

UNCERTAIN_LANGUAGE = "uncertain_language"

# Sentences that follow each other on a page, or in a line that was split.
Passage = list[Sentence]

_PAGE_FILTERS = (LoremIpsum(), CurlyBracket())
_LINE_FILTERS = (NoTerminalPunctuation(), FewWords(), Javascript())
# Only pages: a line has few sentences as it is.
_REST_FILTERS = (FewSentences(),)
C4_FILTERS: tuple[Filter, ...] = (*_PAGE_FILTERS, *_LINE_FILTERS, *_REST_FILTERS)


class TextSettings(NamedTuple):
    """How pages and lines become sentences.

    Attributes:
      identify: check the language that files or fields give. Where none is given, as on web pages,
        it is identified in any case.
      min_language_confidence: 0 to 1; lines whose language is less probable are dropped.
      split_sentences: make each sentence a record. None: of pages, not of lines.
      c4: apply `C4_FILTERS`. None: to pages, not to lines.
    """

    identify: bool = False
    min_language_confidence: float = 0.5
    split_sentences: bool | None = None
    c4: bool | None = None

    @property
    def concerns_lines(self) -> bool:
        """Whether anything is to be done where the input is lines, not pages."""
        return bool(self.identify or self.split_sentences or self.c4)


class _Line:
    """A line of a page, and what becomes of it."""

    __slots__ = ("language", "page", "pieces", "reason", "text")

    def __init__(self, page: int, text: str, language: str) -> None:
        self.page = page
        self.text = text
        self.language = language
        self.pieces: list[str] = []
        self.reason: str | None = None


class PrepareText(beam.PTransform):
    """PCollection of `Batch` -> (batches of sentences, lists of passages, counts).

    Where sentences come from a common text (pages, and lines that are split) they leave as
    passages, else in batches. Counts are `((language, name), number)` of what is dropped: its
    reason, and READ. All numbers are of sentences, or of lines where these are not split.
    """

    def __init__(self, settings: TextSettings) -> None:
        super().__init__()
        self._settings = settings

    def expand(self, batches):
        outputs = batches | beam.ParDo(_Prepare(self._settings)).with_outputs(
            "passages", "counts", main="batches"
        )
        return outputs.batches, outputs.passages, outputs.counts


class _Prepare(beam.DoFn):
    def __init__(self, settings: TextSettings) -> None:
        self._settings = settings

    def process(self, batch: Batch) -> Iterator:
        passages, counts = prepare(batch, self._settings)
        if _is_split(batch, self._settings) or isinstance(batch.records[0], Document):
            if passages:
                yield beam.pvalue.TaggedOutput("passages", passages)
        else:
            yield from by_language(passages)
        for count in counts.items():
            yield beam.pvalue.TaggedOutput("counts", count)


def by_language(passages: Iterable[Passage]) -> Iterator[Batch]:
    """Yields a batch for each language."""
    batches: dict[str, list[Sentence]] = collections.defaultdict(list)
    for passage in passages:
        for sentence in passage:
            batches[sentence.language].append(sentence)
    for language, sentences in batches.items():
        yield Batch(language, sentences)


def prepare(
    batch: Batch, settings: TextSettings
) -> tuple[list[Passage], collections.Counter[tuple[str, str]]]:
    """Returns a passage for each page, or line, of which something is left, and the counts."""
    are_pages = isinstance(batch.records[0], Document)
    lines = [
        _Line(page, text, batch.language)
        for page, record in enumerate(batch.records)
        for text in (_lines_of(record) if are_pages else (record.text,))
    ]
    if batch.language == UNDETERMINED:
        _identify(lines, settings)
    elif settings.identify and batch.language in LANGUAGES:
        _check_language(lines, settings)
    is_split = _is_split(batch, settings)
    for line in lines:
        line.pieces = split_sentences(line.text, line.language) if is_split else [line.text]
    if are_pages if settings.c4 is None else settings.c4:
        _apply_page_filters(batch, lines)
        _apply_line_filters(lines)
        if are_pages:
            _apply_rest_filters(lines)
    return _collect(lines), _count_dropped(lines)


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
        if language is None:
            line.reason = OTHER_LANGUAGE
        elif probability < settings.min_language_confidence:
            line.reason = UNCERTAIN_LANGUAGE


def _check_language(lines: Sequence[_Line], settings: TextSettings) -> None:
    for line, (found, probability) in zip(
        lines, identify([line.text for line in lines]), strict=True
    ):
        is_certain = probability >= settings.min_language_confidence
        if not is_compatible(line.language, found):
            line.reason = OTHER_LANGUAGE if is_certain else UNCERTAIN_LANGUAGE
        elif not is_certain and line.language in IDENTIFIABLE:
            line.reason = UNCERTAIN_LANGUAGE


def _apply_page_filters(batch: Batch, lines: Sequence[_Line]) -> None:
    reasons = find_reasons(_PAGE_FILTERS, batch.records)
    for line in lines:
        line.reason = line.reason or reasons[line.page]


def _apply_line_filters(lines: Sequence[_Line]) -> None:
    for language, group in _grouped(lines, lambda line: line.language).items():
        reasons = find_reasons(_LINE_FILTERS, [Sentence(line.text, language) for line in group])
        for line, reason in zip(group, reasons, strict=True):
            line.reason = reason


def _apply_rest_filters(lines: Sequence[_Line]) -> None:
    pages = list(_grouped(lines, lambda line: line.page).values())
    rests = [Document("\n".join(line.text for line in page), page[0].language) for page in pages]
    for page, reason in zip(pages, find_reasons(_REST_FILTERS, rests), strict=True):
        for line in page:
            line.reason = reason


def _grouped(lines: Sequence[_Line], key: Callable[[_Line], object]) -> dict[object, list[_Line]]:
    """Returns the lines that nothing has dropped yet, by key."""
    groups: dict[object, list[_Line]] = collections.defaultdict(list)
    for line in lines:
        if line.reason is None:
            groups[key(line)].append(line)
    return groups


def _collect(lines: Sequence[_Line]) -> list[Passage]:
    return [
        [Sentence(piece, line.language) for line in page for piece in line.pieces]
        for page in _grouped(lines, lambda line: line.page).values()
    ]


def _count_dropped(lines: Sequence[_Line]) -> collections.Counter[tuple[str, str]]:
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for line in lines:
        if line.reason is not None:
            counts[line.language, line.reason] += len(line.pieces)
            counts[line.language, READ] += len(line.pieces)
    return counts
