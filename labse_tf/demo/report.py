"""The end of the demo: a page that shows what the tiny model has learnt, and a plain-text table."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.ticker import MaxNLocator

from labse_tf.coverage.scripts import FAMILIES, SCRIPT_NAMES, family_of
from labse_tf.demo.corpus.split import sentence_key
from labse_tf.demo.projection import (
    Sentence,
    find_neighbours,
    language_colours,
    project,
    writing_direction,
)
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.outputs import whole_file
from labse_tf.files.textio import read_pairs
from labse_tf.languages import LANGUAGES

SYSTEMS = {
    "trained": "Trained",
    "untrained": "Untrained",
    "tfidf": "Character n-gram TF-IDF",
}
DIRECTIONS = {"to_english": "xx → en", "from_english": "en → xx"}

MAX_SENTENCES = 1500
QUERIES = 6
LABELS = 8
SMALL_POOL = 20
LARGE_POOL = 100  # pairs; chance finds at most 1 % in such a pool
MAP_SIZE = (900, 620)  # of the projection, in SVG units
LABEL_SIZE = (210, 18)


def choose_sentences(dev: Path, *, messages: int = 40, seed: int = 0) -> list[Sentence]:
    """Returns the messages translated into the most languages: the English, then translations.

    A message that shares more than half of its words with one chosen before is passed over. Where
    there are more than `MAX_SENTENCES` in all, each message keeps the translations into the
    languages that have the fewest sentences so far.

    Args:
      dev: a folder of held-out bitext, `<lang>.tsv.gz` with the English first.
      messages: how many, at most.
      seed: decides between languages with equally many sentences.

    Raises:
      InputError: if the files are missing or broken.
    """
    english: dict[str, str] = {}
    translations: dict[str, dict[str, str]] = defaultdict(dict)
    for file in find_corpus_files([os.fspath(dev)], kind=BITEXT):
        for _, source, target in read_pairs(file.path):
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


def format_table(evaluation: dict, untrained: dict) -> str:
    """Returns the accuracies as plain text, the best language first, within 100 columns.

    Args:
      evaluation: of `labse eval retrieval`, with the systems "model" and "tfidf".
      untrained: the same of the untrained "model" alone.
    """
    rule = "-" * 80
    lines = [
        f"{'accuracy in %':32}{'trained':>16}{'untrained':>16}{'n-gram TF-IDF':>16}",
        f"{'code':6}{'language':19}{'pairs':>7}" + f"{'xx→en':>9}{'en→xx':>7}" * 3,
        rule,
    ]
    for row in _language_rows(evaluation, untrained):
        lines.append(_format_row(row["code"], row["name"], row["pairs"], row["scores"]))
    average = _systems(evaluation["average"], untrained["average"])
    return "\n".join([*lines, rule, _format_row("", "average", "", average)])


def _format_row(code: str, name: str, pairs: Any, scores: dict) -> str:
    figures = "".join(
        f"{100 * scores[system]['to_english']:9.1f}{100 * scores[system]['from_english']:7.1f}"
        for system in SYSTEMS
    )
    return f"{code:6}{name:19}{pairs:>7}{figures}"


def write_report(
    *,
    evaluation: dict,
    untrained: dict,
    metrics: dict[str, list[dict]],
    sentences: list[Sentence],
    vectors: np.ndarray,
    facts: dict[str, str],
    destination: Path,
) -> None:
    """Writes the report, one HTML file that needs no other; replaces an old one.

    Args:
      evaluation: of `labse eval retrieval`, with the systems "model" and "tfidf".
      untrained: the same of the untrained "model" alone.
      metrics: the rows of metrics.jsonl of "pretrain" (with `stage`) and "train"; may be empty.
      sentences: held-out sentences in at least two languages, of every group the English too.
      vectors: their embeddings, float `[len(sentences), dim]`, unit rows.
      facts: shown at the top, text by label.
      destination: the file.

    Raises:
      InputError: if `destination` is a folder.
      ValueError: if sentences and vectors differ in number.
    """
    if len(sentences) != len(vectors):
        raise ValueError(f"{len(sentences)} sentences, but {len(vectors)} vectors")
    languages = _language_rows(evaluation, untrained)
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
        average=_systems(evaluation["average"], untrained["average"]),
        small_pool=SMALL_POOL,
        large_pool=LARGE_POOL,
        large=len(large),
        large_average=_mean_scores(large) if large else None,
        max_candidates=evaluation["max_candidates"],
        languages=languages,
        scripts=_script_rows(languages),
        curves=[_curve(metrics["pretrain"]), _curve(metrics["train"])],
        map=_map(sentences, vectors),
        **_neighbourhood(sentences, vectors),
    )
    with whole_file(destination, overwrite=True) as partial:
        partial.write_text(page, encoding="utf-8")


def _systems(scores: dict, untrained: dict) -> dict[str, dict[str, float]]:
    return {
        "trained": scores["model"],
        "untrained": untrained["model"],
        "tfidf": scores["tfidf"],
    }


def _language_rows(evaluation: dict, untrained: dict) -> list[dict[str, Any]]:
    rows = [
        {
            "code": code,
            "name": LANGUAGES[code].name,
            "script": SCRIPT_NAMES[LANGUAGES[code].script],
            "pairs": entry["pairs"],
            "scores": _systems(entry, untrained["languages"][code]),
        }
        for code, entry in evaluation["languages"].items()
    ]
    return sorted(rows, key=lambda row: (-sum(row["scores"]["trained"].values()), row["name"]))


def _script_rows(languages: Sequence[dict]) -> list[dict[str, Any]]:
    members = defaultdict(list)
    for row in languages:
        members[row["script"]].append(row)
    rows = [
        {
            "name": name,
            "languages": len(group),
            "pairs": sum(row["pairs"] for row in group),
            "scores": _mean_scores(group),
        }
        for name, group in members.items()
    ]
    return sorted(rows, key=lambda row: (-row["languages"], row["name"]))


def _mean_scores(rows: Sequence[dict]) -> dict[str, dict[str, float]]:
    return {
        system: {
            direction: float(np.mean([row["scores"][system][direction] for row in rows]))
            for direction in DIRECTIONS
        }
        for system in SYSTEMS
    }


def _curve(rows: Sequence[dict]) -> dict[str, Any] | None:
    """Returns the losses over all steps, a line a stage, and the axes' ticks."""
    rows = [row for row in rows if "loss" in row]  # The others tell of held-out text.
    if not rows:
        return None
    stages: dict[int, list[dict]] = defaultdict(list)
    for row in rows:
        stages[row.get("stage", 0)].append(row)
    lines, start = [], 0
    for _, stage in sorted(stages.items()):
        lines.append(
            {
                "start": start,
                "end": start + stage[-1]["step"],
                "points": [(start + row["step"], row["loss"]) for row in stage],
            }
        )
        start = lines[-1]["end"]
    losses = [row["loss"] for row in rows]
    ticks = MaxNLocator(nbins=5, min_n_ticks=2)
    return {
        "lines": lines,
        "x_ticks": [int(x) for x in ticks.tick_values(0, start) if x <= start],
        "x_max": start,
        "y_ticks": [float(y) for y in ticks.tick_values(0, max(losses))],
        "last": rows[-1],
    }


def _map(sentences: Sequence[Sentence], vectors: np.ndarray) -> dict[str, Any]:
    """Returns the points of the projection in SVG units, its labels and its legend."""
    margin = np.array([16, 24])
    places = margin + project(vectors) * (np.array(MAP_SIZE) - 2 * margin)
    codes = sorted({sentence.language for sentence in sentences})
    colours = language_colours(codes)
    groups = defaultdict(list)
    for place, sentence in zip(places, sentences, strict=True):
        groups[sentence.group].append(place)
    centres = {group: np.median(members, axis=0) for group, members in groups.items()}
    english = {s.group: s.text for s in sentences if s.language == "en"}
    return {
        "size": MAP_SIZE,
        "points": [
            {
                "x": x,
                "y": y,
                "sentence": sentence,
                "name": LANGUAGES[sentence.language].name,
                "colour": colours[sentence.language],
            }
            for (x, y), sentence in zip(places, sentences, strict=True)
        ],
        "labels": [
            {"x": x, "y": y, "text": english[group], "centre": centres[group], "rays": rays}
            for group, (x, y) in _place_labels(centres, LABELS).items()
            for rays in [groups[group]]
        ],
        "messages": len(groups),
        "legend": [
            (family, [(code, LANGUAGES[code].name, colours[code]) for code in members])
            for family in FAMILIES
            if (members := [code for code in codes if family_of(code) == family])
        ],
    }


def _place_labels(centres: dict[int, np.ndarray], count: int) -> dict[int, tuple[float, float]]:
    """Returns the middles of the first labels that have room above their group's centre."""
    width, height = LABEL_SIZE
    placed: dict[int, tuple[float, float]] = {}
    for group, (x, y) in centres.items():
        x = min(max(x, width / 2), MAP_SIZE[0] - width / 2)
        y = max(y - 22, height)
        if all(abs(x - a) >= width or abs(y - b) >= 2 * height for a, b in placed.values()):
            placed[group] = (x, y)
        if len(placed) == count:
            break
    return placed


def _neighbourhood(sentences: Sequence[Sentence], vectors: np.ndarray) -> dict[str, Any]:
    """Returns the queries with their neighbours, and how many of all neighbours are right."""
    neighbours = find_neighbours(sentences, vectors)
    english = {s.group: s.text for s in sentences if s.language == "en"}

    def describe(index: int, query: int, cosine: float = 1.0) -> dict[str, Any]:
        sentence = sentences[index]
        return {
            "sentence": sentence,
            "name": LANGUAGES[sentence.language].name,
            "dir": writing_direction(sentence.language),
            "english": english[sentence.group],
            "cosine": cosine,
            "right": sentence.group == sentences[query].group,
        }

    right = [
        sentences[i].group == sentence.group
        for sentence, found in zip(sentences, neighbours, strict=True)
        for i, _ in found
    ]
    sizes = Counter(sentence.group for sentence in sentences)
    return {
        "queries": [
            {
                **describe(query, query),
                "neighbours": [describe(i, query, cosine) for i, cosine in neighbours[query]],
            }
            for query in _choose_queries(sentences)
        ],
        "right": float(np.mean(right)),
        "chance": sum(size * (size - 1) for size in sizes.values())
        / (len(sentences) * (len(sentences) - 1)),
    }


def _choose_queries(sentences: Sequence[Sentence], *, seed: int = 0) -> list[int]:
    """Returns sentences drawn at random: of the commonest scripts one each, all of other groups."""
    scripts = [LANGUAGES[sentence.language].script for sentence in sentences]
    order = list(range(len(sentences)))
    random.Random(seed).shuffle(order)
    queries: list[int] = []
    for script, _ in Counter(scripts).most_common():
        taken = {sentences[i].group for i in queries}
        free = (
            i
            for i in order
            if scripts[i] == script
            and sentences[i].language != "en"
            and sentences[i].group not in taken
        )
        queries.extend([i for i in [next(free, None)] if i is not None])
        if len(queries) == QUERIES:
            break
    return queries
