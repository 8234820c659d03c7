"""The demo's result: the table on stdout and report.html, from the output of the stages."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np

from labse_tf.demo.report import choose_sentences, write_report
from labse_tf.demo.report_scores import format_table
from labse_tf.files.outputs import whole_file

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
    evaluation = _read_json(out / "retrieval.json")
    table = _read_json(out / "retrieval_table.json")
    model = _read_json(out / "model" / "model.json")
    first = _read_json(out / "table_model" / "model.json")["training"]
    total = _read_json(out / "clean_bitext" / "report.json")["total"]
    encoder, training = model["encoder"], model["training"]
    facts = {
        "Training pairs": f"{total['kept']:,} in {len(model['languages'])} languages",
        "Held-out pairs": f"{sum(row['pairs'] for row in evaluation['languages'].values()):,} in "
        f"{len(evaluation['languages'])} languages",
        "Encoder": f"{encoder['num_layers']} layers, {encoder['hidden_size']} wide",
        "Vocabulary": f"{model['vocabulary']['tokens']:,} cased WordPieces",
        "Training without layers": _extent(first),
        "Training with layers": _extent(training),
        "Time": f"{sum(seconds.values()) / 60:.1f} minutes on {os.cpu_count()} cores",
    }
    report = out / "report.html"
    with whole_file(report, overwrite=True) as partial:
        write_report(
            evaluation=evaluation,
            table=table,
            metrics={
                "table": _read_json_lines(out / "table" / "metrics.jsonl"),
                "layers": _read_json_lines(out / "dual" / "metrics.jsonl"),
            },
            sentences=choose_sentences(out / "corpus" / "dev"),
            vectors=np.load(out / "sentences.npy", allow_pickle=False),
            facts=facts,
            destination=partial,
        )
    print(format_table(evaluation, table))
    for name, value in seconds.items():
        _log.info("%6.1f s  %s", value, name)
    _log.info("\nthe report: %s\nthe model:  %s", report, out / "model")


def _extent(training: dict) -> str:
    return f"{training['steps']:,} steps of {training['batch_size']:,} pairs"


def _read_json(path: Path):
    return json.loads(path.read_text("utf-8"))


def _read_json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
