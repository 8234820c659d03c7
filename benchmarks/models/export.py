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
    parser = make_parser(__doc__)
    parser.add_argument("model_dir", metavar="MODEL_DIR")
    parser.add_argument("pairs", metavar="PAIRS")
    parser.add_argument("--sentences", type=int, default=5000, help="that are timed")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        systems = _make(args.model_dir, Path(folder))
        sizes = {name: _megabytes(path) for name, (path, _) in systems.items()}
        embedders = {name: load() for name, (_, load) in systems.items()}
        sentences = _sentences(args.pairs, args.sentences)
        seconds = {name: [] for name in embedders}
        vectors = {}
        for _ in range(args.turns):
            for name, embedder in embedders.items():
                start = time.perf_counter()
                vectors[name] = embedder.encode(sentences)
                seconds[name].append(time.perf_counter() - start)
        accuracies = {
            name: primary_figure(retrieval, retrieval.evaluate(embedder, args.pairs))
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
    """Exports each format; returns by name the files to measure and how to load them."""
    source = open_source(model_dir)
    whole = folder / "float32"
    options = {"length": source.config.max_positions, "verified": False}
    export(source, whole, formats=("hub", "lite", "onnx"), **options)
    systems = {"SavedModel": (whole / "encoder", lambda: Embedder(ModelDir.open(whole)))}
    for table in tqdm(("float16", "int8"), "export"):
        packed = folder / table
        export(source, packed, table=table, **options)
        systems[f"SavedModel, {table} table"] = (
            packed / "encoder",
            lambda packed=packed: Embedder(ModelDir.open(packed)),
        )
    systems["LiteRT, int8"] = (
        whole / LITE_FILE,
        lambda: Embedder(ModelDir.open(whole / LITE_FILE)),
    )
    systems["ONNX"] = (whole / ONNX_FILE, lambda: Embedder(ModelDir.open(whole / ONNX_FILE)))
    systems["ONNX, int8"] = (whole / INT8_FILE, lambda: Embedder(ModelDir.open(whole / INT8_FILE)))
    return systems


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else path.rglob("*")
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
