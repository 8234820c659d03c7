"""Filters, deduplicates and shards monolingual text (paper section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.make_sentences import needs_sentences
from beam_pipelines.filtering.prepare_text import TextSettings
from beam_pipelines.filters import Filter
from beam_pipelines.filters.c4.curly_bracket import CurlyBracket
from beam_pipelines.filters.c4.few_sentences import FewSentences
from beam_pipelines.filters.c4.few_words import FewWords
from beam_pipelines.filters.c4.javascript import Javascript
from beam_pipelines.filters.c4.lorem_ipsum import LoremIpsum
from beam_pipelines.filters.c4.no_terminal_punctuation import NoTerminalPunctuation
from beam_pipelines.filters.c4.policy_notice import PolicyNotice
from beam_pipelines.filters.low_quality import LowQuality
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.filters.wrong_language import WrongLanguage
from beam_pipelines.reading.scores import find_score_files, have_score
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import ALL_FORMATS, MONOLINGUAL, PAGE_FORMATS, find_corpus_files

MIN_CHARACTERS, MAX_CHARACTERS = 10, 5000
# The reasons for lines that are to be split, and for sentences that these are split into.
SHORT_LINE, LONG_LINE, SHORT_SENTENCE = "short_line", "long_line", "short_sentence"


def run(
    inputs: Sequence[str],
    out: str,
    *,
    min_characters: int | None = None,
    max_characters: int | None = None,
    min_sentence_characters: int | None = None,
    identify: bool = False,
    max_language_doubt: float = 0.3,
    min_language_confidence: float = 0.5,
    split_sentences: bool | None = None,
    c4: bool | None = None,
    min_words: int = 5,
    min_sentences: int = 3,
    quality: str | None = None,
    min_quality: float = 0.5,
    **options,
) -> dict:
    """Writes `out/monolingual/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      min_characters: shorter lines are dropped, before they are split. None: MIN_CHARACTERS.
      max_characters: longer lines are dropped, before they are split. None: MAX_CHARACTERS.
      min_sentence_characters: shorter sentences are dropped, where sentences are made of pages and
        lines. None: 0.
      identify: drop sentences that are not in the language that their file or field gives. The
        language of web pages is identified in any case, line by line.
      max_language_doubt: -1 to 1, with `identify`: what is surer to be in another language is
        dropped (`WrongLanguage`).
      min_language_confidence: 0 to 1; lines of web pages identified with less are dropped.
      split_sentences: make each sentence a record. None: of pages, not of lines.
      c4: apply the heuristics of C4, see `prepare_text`. None: to pages, not to lines.
      min_words: of a line, for C4.
      min_sentences: of what is left of a page, for C4.
      quality: a model of `labse corpus train-quality`; None filters by no quality.
      min_quality: 0 to 1; sentences of a lower quality by this model are dropped.
      options: those of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`; also for a share out of its range, a damaged model, or a
        limit of lines or sentences where there are none.
    """
    for option, share in (
        ("--min-language-confidence", min_language_confidence),
        ("--min-quality", min_quality),
    ):
        if not 0 <= share <= 1:
            raise InputError(f"{option} is {share}", remedy="give a number from 0 to 1")
    lengths = (
        MIN_CHARACTERS if min_characters is None else min_characters,
        MAX_CHARACTERS if max_characters is None else max_characters,
    )
    settings = TextSettings(
        min_language_confidence=min_language_confidence,
        split_sentences=split_sentences,
        c4=c4,
        page_filters=(LoremIpsum(), CurlyBracket()),
        line_filters=(
            NoTerminalPunctuation(),
            FewWords(min_words),
            Javascript(),
            PolicyNotice(),
        ),
        rest_filters=(FewSentences(min_sentences),),
        length_filters=(TooShort(lengths[0], SHORT_LINE), TooLong(lengths[1], LONG_LINE)),
    )
    from_scores = options.get("from_scores", False)
    if _are_sentences(inputs, settings, from_scores=from_scores):
        if from_scores and (min_characters, max_characters) != (None, None):
            raise InputError(
                "--min-characters and --max-characters limit lines, but these scores are of "
                "sentences that lines were split into",
                remedy="use --min-sentence-characters, or filter the corpus again",
            )
        filters: list[Filter] = [TooShort(min_sentence_characters or 0, SHORT_SENTENCE)]
    else:
        if min_sentence_characters is not None:
            raise InputError(
                "--min-sentence-characters limits sentences, but these records are lines",
                remedy="use --min-characters, or filter the corpus with --split-sentences",
            )
        filters = [TooShort(lengths[0]), TooLong(lengths[1])]
        settings = None
    if identify:
        filters.append(WrongLanguage(max_language_doubt))
    if quality is not None:
        filters.append(LowQuality(quality, min_quality))
    return filter_job.run(
        inputs,
        out,
        kind=MONOLINGUAL,
        filters=filters,
        options=JobOptions(**options),
        text_settings=None if from_scores else settings,
    )


def _are_sentences(inputs: Sequence[str], settings: TextSettings, *, from_scores: bool) -> bool:
    """Whether the job's records are sentences of pages or lines, and not the lines of its input."""
    if from_scores:
        return have_score(find_score_files(inputs), SHORT_SENTENCE)
    formats = (*ALL_FORMATS, *PAGE_FORMATS)
    return needs_sentences(find_corpus_files(inputs, kind=MONOLINGUAL, formats=formats), settings)
