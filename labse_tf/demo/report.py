"""The demo's HTML report, which shows what the tiny model has learnt."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import jinja2
import numpy as np

from labse_tf.demo.corpus.split import sentence_key
from labse_tf.demo.projection import Sentence
from labse_tf.demo.report_map import draw_map, neighbourhood
from labse_tf.demo.report_scores import (
    DIRECTIONS,
    LARGE_POOL,
    SMALL_POOL,
    SYSTEMS,
    curve,
    language_rows,
    mean_scores,
    script_rows,
    systems_of,
)
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.outputs import whole_file
from labse_tf.files.textio import read_pairs

MAX_SENTENCES = 1500


def choose_sentences(dev: Path, *, messages: int = 40, seed: int = 0) -> list[Sentence]:
    """Returns the messages translated into the most languages: English first, then translations.

    A message that shares more than half of its words with one already chosen is skipped. If there
    are more than `MAX_SENTENCES` in all, each message keeps its translations into the languages
    with the fewest sentences so far.

    Args:
      dev: a folder of held-out bitext, `<lang>.tsv.gz` with English first.
      messages: maximum number of messages.
      seed: breaks ties between languages with equally many sentences.

    Raises:
      InputError: if the files are missing or broken.
    """
    english: dict[str, str] = {}
    translations: dict[str, dict[str, str]] = defaultdict(dict)
    for file in find_corpus_files([os.fspath(dev)], kind=BITEXT):
        for _, source, target in read_pairs(file.path, swapped=file.swapped):
            key = sentence_key(source)
            english.setdefault(key, source)
            translations[key].setdefault(file.language, target)

    chosen = _different(sorted(english, key=lambda key: (-len(translations[key]), key)), messages)
    most = MAX_SENTENCES // messages - 1
    used: Counter[str] = Counter()
    generator = random.Random(seed)
    sentences = []
    for group, key in enumerate(chosen):
        languages = sorted(translations[key], key=lambda code: (used[code], generator.random()))
        sentences.append(Sentence(english[key], "en", group))
        for language in languages[:most]:
            sentences.append(Sentence(translations[key][language], language, group))
            used[language] += 1
    return sentences


def _different(keys: Iterable[str], count: int) -> list[str]:
    chosen: dict[str, set[str]] = {}
    for key in keys:
        words = set(key.split())
        if all(2 * len(words & other) <= len(words | other) for other in chosen.values()):
            chosen[key] = words
        if len(chosen) == count:
            break
    return list(chosen)


def write_report(
    *,
    evaluation: dict,
    table: dict,
    metrics: dict[str, list[dict]],
    sentences: list[Sentence],
    vectors: np.ndarray,
    facts: dict[str, str],
    destination: Path,
) -> None:
    """Writes the report as one self-contained HTML file; an existing one is replaced.

    Args:
      evaluation: result of `labse eval retrieval`, with the systems "model" and "tfidf".
      table: the same for the "model" without layers alone.
      metrics: the rows of metrics.jsonl of the runs "table" and "layers"; may be empty.
      sentences: held-out sentences in at least two languages, with the English one of every group.
      vectors: their embeddings, float `[len(sentences), dim]`, unit rows.
      facts: shown at the top, text by label.
      destination: the file to write.

    Raises:
      InputError: if `destination` is a folder.
      ValueError: if sentences and vectors differ in number.
    """
    if len(sentences) != len(vectors):
        raise ValueError(f"{len(sentences)} sentences, but {len(vectors)} vectors")
    languages = language_rows(evaluation, table)
    large = [row for row in languages if row["pairs"] >= LARGE_POOL]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        systems=SYSTEMS,
        directions=DIRECTIONS,
        facts=facts,
        average=systems_of(evaluation["average"], table["average"]),
        small_pool=SMALL_POOL,
        large_pool=LARGE_POOL,
        large=len(large),
        large_average=mean_scores(large) if large else None,
        max_candidates=evaluation["max_candidates"],
        languages=languages,
        scripts=script_rows(languages),
        curves=[curve(metrics["table"]), curve(metrics["layers"])],
        map=draw_map(sentences, vectors),
        **neighbourhood(sentences, vectors),
    )
    with whole_file(destination, overwrite=True) as partial:
        partial.write_text(page, encoding="utf-8")
