"""Compares the formats of `labse export`: size, speed, cosine and retrieval accuracy.

    python -m benchmarks.models.export MODEL_DIR PAIRS [--sentences 5000] [--turns 3]

PAIRS is a folder of `<lang>.tsv` that the model was not trained on. Exports MODEL_DIR in each
format, embeds the same sentences with each alternately, in batches of similar length, and scores
retrieval. Prints Markdown; needs no other environment.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from tqdm import tqdm

from benchmarks import make_parser
from export.lite import LITE_FILE
from export.model_dir import export
from export.onnx import INT8_FILE, ONNX_FILE
from export.source import open_source
from labse_tf.embedding.embedder import Embedder
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.evaluation.task import primary_figure
from labse_tf.evaluation.tasks import retrieval
from labse_tf.files.corpus_files import BITEXT, find_plain_files
from labse_tf.files.textio import read_pairs


def main() -> None:
    args = make_parser(__doc__, "model_dir", "pairs", sentences=5000, turns=3).parse_args()
    pairs = str(args.pairs)
    with tempfile.TemporaryDirectory() as folder:
        systems = _make(args.model_dir, Path(folder))
        sizes = {name: _megabytes(place) for name, (place, _) in systems.items()}
        embedders = {name: embedder for name, (_, embedder) in systems.items()}
        sentences = _sentences(pairs, args.sentences)
        seconds = {name: [] for name in embedders}
        vectors = {}
        for _ in range(args.turns):
            for name, embedder in embedders.items():
                start = time.perf_counter()
                vectors[name] = embedder.encode(sentences)
                seconds[name].append(time.perf_counter() - start)
        accuracies = {
            name: primary_figure(retrieval, retrieval.evaluate(embedder, pairs))
            for name, embedder in embedders.items()
        }
    print(f"{os.cpu_count()} cores, {len(sentences)} sentences, medians of {args.turns} turns\n")
    print("| | MB | sentences/s | cosine: mean | least | accuracy, % |\n|---|---|---|---|---|---|")
    for name, found in vectors.items():
        cosines = (found * vectors["SavedModel"]).sum(axis=1)
        print(
            f"| {name} | {sizes[name]:,.1f} | {len(sentences) / median(seconds[name]):,.0f} | "
            f"{cosines.mean():.5f} | {cosines.min():.4f} | {100 * accuracies[name]:.2f} |"
        )


def _make(model_dir: str, folder: Path) -> dict:
    """Exports each format; returns by name the files to measure and the embedder."""
    source = open_source(model_dir)
    whole = folder / "float32"
    options = {"length": source.config.max_positions, "verified": False}
    export(source, whole, formats=("hub", "lite", "onnx"), **options)
    places = {"SavedModel": whole}
    for table in tqdm(("float16", "int8"), "export"):
        places[f"SavedModel, {table} table"] = folder / table
        export(source, folder / table, table=table, **options)
    files = {"LiteRT, int8": LITE_FILE, "ONNX": ONNX_FILE, "ONNX, int8": INT8_FILE}
    places |= {name: whole / file for name, file in files.items()}
    return {name: (place, Embedder(ModelDir.open(place))) for name, place in places.items()}


def _megabytes(place: Path) -> float:
    files = [place] if place.is_file() else (place / "encoder").rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def _sentences(pairs: str, count: int) -> list[str]:
    texts = [
        text
        for file in find_plain_files([pairs], kind=BITEXT)
        for _, *sides in read_pairs(file.path)
        for text in sides
    ]
    return np.random.default_rng(42).permutation(texts)[:count].tolist()


if __name__ == "__main__":
    main()
