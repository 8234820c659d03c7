"""The demo's result: a table on stdout, and an HTML report of what the tiny model has learnt."""

from __future__ import annotations

import json
import logging
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import langcodes
import numpy as np

from labse_tf.demo.corpus.write import sentence_key
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.outputs import whole_file
from labse_tf.files.textio import read_pairs
from labse_tf.languages import language_of, script_of

SYSTEMS = {
    "trained": "With layers",
    "table": "Without layers",
    "tfidf": "Character n-gram TF-IDF",
}
DIRECTIONS = {"to_english": "xx → en", "from_english": "en → xx"}
LARGE_POOL = 100  # pairs; chance finds at most 1 % in such a pool
_QUERIES, _NEIGHBOURS = 6, 5
_RIGHT_TO_LEFT = ("Arab", "Hebr")

_log = logging.getLogger("labse")


class Sentence(NamedTuple):
    """A held-out sentence; `group` is the same for an English message and all its translations."""

    text: str
    language: str
    group: int


def write_sentences(out: Path) -> None:
    """Writes the dev sentences that the report shows to sentences.txt, one per line."""
    with whole_file(out / "sentences.txt", overwrite=True) as partial:
        sentences = choose_sentences(out / "corpus" / "dev")
        partial.write_text("".join(sentence.text + "\n" for sentence in sentences), "utf-8")


def show_result(out: Path, seconds: dict[str, float]) -> None:
    """Prints the table and writes report.html; `seconds` is the time that each stage took."""

    def read(*names: str) -> Any:
        return json.loads(out.joinpath(*names).read_text("utf-8"))

    def extent(training: dict) -> str:
        return f"{training['steps']:,} steps of {training['batch_size']:,} pairs"

    evaluation, table = read("retrieval.json"), read("retrieval_table.json")
    model = read("model", "model.json")
    total = read("clean_bitext", "report.json")["total"]
    encoder, held_out = model["encoder"], evaluation["languages"]
    pairs = sum(row["pairs"] for row in held_out.values())
    facts = {
        "Training pairs": f"{total['kept']:,} in {len(model['languages'])} languages",
        "Held-out pairs": f"{pairs:,} in {len(held_out)} languages",
        "Encoder": f"{encoder['num_layers']} layers, {encoder['hidden_size']} wide",
        "Vocabulary": f"{model['vocabulary']['tokens']:,} cased WordPieces",
        "Training without layers": extent(read("table_model", "model.json")["training"]),
        "Training with layers": extent(model["training"]),
        "Time": f"{sum(seconds.values()) / 60:.1f} minutes on {os.cpu_count()} cores",
    }
    report, sentences = out / "report.html", choose_sentences(out / "corpus" / "dev")
    vectors = np.load(out / "sentences.npy", allow_pickle=False)
    results = {"evaluation": evaluation, "table": table, "facts": facts}
    write_report(**results, sentences=sentences, vectors=vectors, destination=report)
    print(format_table(evaluation, table))
    for name, value in seconds.items():
        _log.info("%6.1f s  %s", value, name)
    _log.info("\nthe report: %s\nthe model:  %s", report, out / "model")


def choose_sentences(dev: Path, *, messages: int = 20) -> list[Sentence]:
    """Returns the messages translated into the most languages: English first, then translations.

    `dev` holds the bitext, `<lang>.tsv.gz` with English first. A message that shares more than half
    of its words with one already chosen is skipped.
    """
    texts: dict[str, dict[str, str]] = {}
    for file in find_corpus_files([os.fspath(dev)], kind=BITEXT):
        for _, source, target in read_pairs(file.path, swapped=file.swapped):
            message = texts.setdefault(sentence_key(source), {"en": source})
            message.setdefault(file.language, target)
    chosen: dict[str, set[str]] = {}
    for key in sorted(texts, key=lambda key: (-len(texts[key]), key)):
        words = set(key.split())
        if all(2 * len(words & other) <= len(words | other) for other in chosen.values()):
            chosen[key] = words
        if len(chosen) == messages:
            break
    return [
        Sentence(text, language, group)
        for group, key in enumerate(chosen)
        for language, text in texts[key].items()
    ]


def write_report(
    *,
    evaluation: dict,
    table: dict,
    sentences: list[Sentence],
    vectors: np.ndarray,
    facts: dict[str, str],
    destination: Path,
) -> None:
    """Writes the report as one self-contained HTML file; an existing one is replaced.

    Args:
      evaluation: result of `labse eval retrieval`, with the systems "model" and "tfidf".
      table: the same for the "model" without layers alone.
      sentences: held-out sentences in at least two languages, with the English one of every group.
      vectors: their embeddings, float `[len(sentences), dim]`, unit rows.
      facts: shown at the top, text by label.
    """
    languages = _language_rows(evaluation, table)
    large = [row for row in languages if row["pairs"] >= LARGE_POOL]
    members = defaultdict(list)
    for row in languages:
        members[row["script"]].append(row)
    scripts = [
        {"name": name, "languages": len(rows), "scores": _mean_scores(rows)}
        for name, rows in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    options = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=loader, autoescape=True, **options)
    page = environment.get_template("report.html.j2").render(
        systems=SYSTEMS,
        directions=DIRECTIONS,
        facts=facts,
        average=_systems_of(evaluation["average"], table["average"]),
        large_pool=LARGE_POOL,
        large=len(large),
        large_average=_mean_scores(large) if large else None,
        max_candidates=evaluation["max_candidates"],
        languages=languages,
        scripts=scripts,
        queries=_queries(sentences, vectors),
    )
    with whole_file(destination, overwrite=True) as partial:
        partial.write_text(page, encoding="utf-8")


def format_table(evaluation: dict, table: dict) -> str:
    """Returns the accuracies as plain text, the best language first, within 100 columns."""
    rule = "-" * 80
    lines = [
        f"{'accuracy in %':32}{'with layers':>16}{'without':>16}{'n-gram TF-IDF':>16}",
        f"{'code':6}{'language':19}{'pairs':>7}" + f"{'xx→en':>9}{'en→xx':>7}" * 3,
        rule,
    ]
    for row in _language_rows(evaluation, table):
        lines.append(_format_row(row["code"], row["name"], row["pairs"], row["scores"]))
    average = _systems_of(evaluation["average"], table["average"])
    return "\n".join([*lines, rule, _format_row("", "average", "", average)])


def _format_row(code: str, name: str, pairs: Any, scores: dict) -> str:
    figures = "".join(
        f"{100 * scores[system]['to_english']:9.1f}{100 * scores[system]['from_english']:7.1f}"
        for system in SYSTEMS
    )
    return f"{code:6}{name:19}{pairs:>7}{figures}"


def _systems_of(scores: dict, table: dict) -> dict[str, dict[str, float]]:
    return {"trained": scores["model"], "table": table["model"], "tfidf": scores["tfidf"]}


def _language_rows(evaluation: dict, table: dict) -> list[dict[str, Any]]:
    rows = [
        {
            "code": code,
            "name": language_of(code).name,
            "script": langcodes.Language.make(script=script_of(code)).script_name(),
            "pairs": entry["pairs"],
            "scores": _systems_of(entry, table["languages"][code]),
        }
        for code, entry in evaluation["languages"].items()
    ]
    return sorted(rows, key=lambda row: (-sum(row["scores"]["trained"].values()), row["name"]))


def _mean_scores(rows: Sequence[dict]) -> dict[str, dict[str, float]]:
    return {
        system: {
            direction: float(np.mean([row["scores"][system][direction] for row in rows]))
            for direction in DIRECTIONS
        }
        for system in SYSTEMS
    }


def find_neighbours(
    sentences: Sequence[Sentence], vectors: np.ndarray, *, count: int = _NEIGHBOURS
) -> list[list[tuple[int, float]]]:
    """Returns for each sentence the nearest in other languages: `(index, cosine)`, nearest first.

    The same string in another language is skipped. `vectors` are unit rows, float `[n, dim]`.
    """
    cosines = vectors @ vectors.T
    for values in zip(*[(one.language, one.text) for one in sentences], strict=True):
        _, ids = np.unique(values, return_inverse=True)
        cosines[ids[:, None] == ids[None, :]] = -np.inf
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    return [
        [(int(i), float(row[i])) for i in places if np.isfinite(row[i])]
        for row, places in zip(cosines, nearest, strict=True)
    ]


def _queries(sentences: Sequence[Sentence], vectors: np.ndarray) -> list[dict[str, Any]]:
    """Returns a random translation of each of the first messages, with its neighbours."""
    neighbours = find_neighbours(sentences, vectors)
    english = {one.group: one.text for one in sentences if one.language == "en"}

    def describe(index: int) -> dict[str, Any]:
        sentence = sentences[index]
        return {
            "sentence": sentence,
            "name": language_of(sentence.language).name,
            # The HTML attribute; "auto" goes by the first word, which is often a Latin name.
            "dir": "rtl" if script_of(sentence.language) in _RIGHT_TO_LEFT else "auto",
            "english": english[sentence.group],
        }

    members = defaultdict(list)
    for index, one in enumerate(sentences):
        if one.language != "en":
            members[one.group].append(index)
    generator = random.Random(0)
    queries = []
    for group in sorted(members)[:_QUERIES]:
        query = generator.choice(members[group])
        found = [
            {**describe(i), "cosine": cosine, "right": sentences[i].group == group}
            for i, cosine in neighbours[query]
        ]
        queries.append({**describe(query), "neighbours": found})
    return queries
