"""Measures the rates of one core of this machine that the cost of mining is calculated from.

    python -m benchmarks.mining.rates MODEL_DIR TEXT [--sentences 300]

TEXT has one sentence per line; MODEL_DIR has `model.json` and a multiple of 64 dimensions. Seconds
are CPU time over all threads, so that other work on the machine does not count. Prints Markdown:
embedding, products of float32 matrices, and faiss comparing queries one by one with vectors of the
model's dimension, stored in full, in int8, and in 64 bytes by product quantisation. The vectors are
random, as their values do not affect speed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

import labse_tf
from benchmarks.mining.cost import Encoder, sentence_flop
from labse_tf.files.textio import read_lines
from vocab import wordpiece_file
from vocab.wordpiece import WordPiece

_CANDIDATES, _QUERIES = 50_000, 20
_TURNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model_dir", metavar="MODEL_DIR")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--sentences", type=int, default=300)
    args = parser.parse_args()
    texts = [line for _, line in islice(read_lines(args.text), args.sentences)]
    print("| one core | |\n|---|---|")
    dim = _embedding(args.model_dir, texts)
    with threadpool_limits(1):
        faiss.omp_set_num_threads(1)
        _products(dim)
        _scans(dim)


def _embedding(model_dir: str, texts: list[str]) -> int:
    model = labse_tf.load(model_dir)
    facts = json.loads(Path(model_dir, "model.json").read_text("utf-8"))
    sizes = ("num_layers", "hidden_size", "intermediate_size")
    encoder = Encoder(*(facts["encoder"][name] for name in sizes))
    vocabulary = wordpiece_file.read(Path(model_dir, "encoder", "assets", "vocab.txt"))
    tokenizer = WordPiece(vocabulary, max_bytes_per_word=facts["max_bytes_per_word"])
    tokens = np.array([len(tokenizer.tokenize(text)) + 2 for text in texts])
    tokens = np.minimum(tokens, model.sequence_length)
    model.encode(texts[:50])
    seconds = _processor_seconds(lambda: model.encode(texts))
    flop = sum(sentence_flop(encoder, int(length)) for length in tokens)
    print(f"| sentences/s, of {tokens.mean():.1f} tokens | {len(texts) / seconds:.1f} |")
    print(f"| GFLOP/s in these, padding not counted | {flop / seconds / 1e9:.1f} |")
    return model.dim


def _products(dim: int) -> None:
    generator = np.random.default_rng(1)
    one, other = (generator.standard_normal((2048, dim), np.float32) for _ in range(2))
    out = np.empty((2048, 2048), np.float32)
    seconds = _processor_seconds(lambda: np.matmul(one, other.T, out=out))
    print(f"| GFLOP/s in products of float32 matrices | {2 * dim * 2048**2 / seconds / 1e9:.1f} |")


def _scans(dim: int) -> None:
    generator = np.random.default_rng(2)
    candidates = generator.standard_normal((_CANDIDATES, dim), np.float32)
    whole, bytes_ = (
        faiss.index_factory(dim, name, faiss.METRIC_INNER_PRODUCT) for name in ("Flat", "SQ8")
    )
    for index in (whole, bytes_):
        index.train(candidates)
        index.add(candidates)
    named = (
        ("float32", whole),
        ("int8", bytes_),
        ("64 bytes (PQ64)", _random_codes(dim, generator)),
    )
    for name, index in named:
        seconds = _processor_seconds(lambda index=index: _ask(index, candidates[:_QUERIES]))
        rate = _CANDIDATES * _QUERIES / seconds / 1e6
        print(f"| million vectors/s compared with a query, {name} | {rate:.1f} |")


def _random_codes(dim: int, generator: np.random.Generator) -> faiss.IndexPQ:
    index = faiss.IndexPQ(dim, 64, 8, faiss.METRIC_INNER_PRODUCT)
    centroids = generator.standard_normal(256 * dim, np.float32)
    faiss.copy_array_to_vector(centroids, index.pq.centroids)
    codes = generator.integers(0, 256, 64 * _CANDIDATES, np.uint8)
    faiss.copy_array_to_vector(codes, index.codes)
    index.ntotal, index.is_trained = _CANDIDATES, True
    return index


def _ask(index: faiss.Index, queries: np.ndarray) -> None:
    # One query at a time, as when the lists of an inverted file are searched.
    for query in queries:
        index.search(query[np.newaxis], 4)


def _processor_seconds(work: Callable[[], object]) -> float:
    """Returns the best of several turns, as other work on the machine can only slow one down."""
    seconds = []
    for _ in range(_TURNS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
