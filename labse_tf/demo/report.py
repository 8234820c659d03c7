"""The demo's result: a table on stdout, and an HTML report of what the tiny model has learnt."""

from __future__ import annotations

import json
import logging
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.ticker import MaxNLocator

from labse_tf.coverage.plot import SCRIPT_NAMES
from labse_tf.demo.corpus.write import sentence_key
from labse_tf.demo.report_map import Sentence, draw_map, neighbourhood
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.outputs import whole_file
from labse_tf.files.textio import read_pairs
from labse_tf.languages import language_of, script_of

MAX_SENTENCES = 1500
SYSTEMS = {
    "trained": "With layers",
    "table": "Without layers",
    "tfidf": "Character n-gram TF-IDF",
}
DIRECTIONS = {"to_english": "xx → en", "from_english": "en → xx"}
SMALL_POOL = 20
LARGE_POOL = 100  # pairs; chance finds at most 1 % in such a pool

_log = logging.getLogger("labse")


def write_sentences(out: Path) -> None:
    """Writes the dev sentences that the report shows to sentences.txt, one per line."""
    with whole_file(out / "sentences.txt", overwrite=True) as partial:
        sentences = choose_sentences(out / "corpus" / "dev")
        partial.write_text("".join(sentence.text + "\n" for sentence in sentences), "utf-8")


def show_result(out: Path, seconds: dict[str, float]) -> None:
    """Prints the table and writes report.html.

    Args:
      out: the demo's folder, with all stages completed.
      seconds: time that each stage took.
    """

    def read(*names: str) -> Any:
        return json.loads(out.joinpath(*names).read_text("utf-8"))

    def read_lines(*names: str) -> list[dict]:
        lines = out.joinpath(*names).read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

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
    report = out / "report.html"
    write_report(
        evaluation=evaluation,
        table=table,
        metrics={
            "table": read_lines("table", "metrics.jsonl"),
            "layers": read_lines("dual", "metrics.jsonl"),
        },
        sentences=choose_sentences(out / "corpus" / "dev"),
        vectors=np.load(out / "sentences.npy", allow_pickle=False),
        facts=facts,
        destination=report,
    )
    print(format_table(evaluation, table))
    for name, value in seconds.items():
        _log.info("%6.1f s  %s", value, name)
    _log.info("\nthe report: %s\nthe model:  %s", report, out / "model")


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
    languages = _language_rows(evaluation, table)
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
        average=_systems_of(evaluation["average"], table["average"]),
        small_pool=SMALL_POOL,
        large_pool=LARGE_POOL,
        large=len(large),
        large_average=_mean_scores(large) if large else None,
        max_candidates=evaluation["max_candidates"],
        languages=languages,
        scripts=_script_rows(languages),
        curves=[_curve(metrics["table"]), _curve(metrics["layers"])],
        map=draw_map(sentences, vectors),
        **neighbourhood(sentences, vectors),
    )
    with whole_file(destination, overwrite=True) as partial:
        partial.write_text(page, encoding="utf-8")


def format_table(evaluation: dict, table: dict) -> str:
    """Returns the accuracies as plain text, the best language first, within 100 columns.

    Args:
      evaluation: result of `labse eval retrieval`, with the systems "model" and "tfidf".
      table: the same for the "model" without layers alone.
    """
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
    return {
        "trained": scores["model"],
        "table": table["model"],
        "tfidf": scores["tfidf"],
    }


def _language_rows(evaluation: dict, table: dict) -> list[dict[str, Any]]:
    rows = [
        {
            "code": code,
            "name": language_of(code).name,
            "script": SCRIPT_NAMES[script_of(code)],
            "pairs": entry["pairs"],
            "scores": _systems_of(entry, table["languages"][code]),
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
    """Returns the loss of each logged step, and the axis ticks."""
    rows = [row for row in rows if "loss" in row]  # The others are about held-out text.
    if not rows:
        return None
    ticks = MaxNLocator(nbins=5, min_n_ticks=2)
    steps, losses = ([row[name] for row in rows] for name in ("step", "loss"))
    return {
        "points": list(zip(steps, losses, strict=True)),
        "x_ticks": [int(x) for x in ticks.tick_values(0, steps[-1]) if x <= steps[-1]],
        "x_max": steps[-1],
        "y_ticks": [float(y) for y in ticks.tick_values(0, max(losses))],
        "last": rows[-1],
    }
