"""Mines as LASER does; `benchmarks.mining.speed` runs this in a separate process.

    python laser_mining.py SOURCE.npy TARGET.npy NEIGHBOURS OUT.npz

Our reimplementation of LASER's published algorithm (Artetxe and Schwenk 2019; `--retrieval max
--margin ratio`): all vectors in memory, an exact search by faiss in each direction, the margin of
every candidate in a loop, then the pairs by descending score, each sentence once. Writes the pairs;
prints a JSON object of seconds.
"""

import json
import sys
import time

import faiss
import numpy as np


def search(queries, candidates, k):
    index = faiss.IndexFlatIP(candidates.shape[1])
    index.add(candidates)
    return index.search(queries, min(k, len(candidates)))


def score(own, others, found, own_means, other_means):
    scores = np.zeros(found.shape)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            other = found[i, j]
            mean = (own_means[i] + other_means[other]) / 2
            scores[i, j] = own[i].dot(others[other]) / mean
    return scores


def choose(forward, backward, forward_scores, backward_scores):
    n, m = len(forward), len(backward)
    sources = np.concatenate([np.arange(n), backward[np.arange(m), backward_scores.argmax(axis=1)]])
    targets = np.concatenate([forward[np.arange(n), forward_scores.argmax(axis=1)], np.arange(m)])
    scores = np.concatenate([forward_scores.max(axis=1), backward_scores.max(axis=1)])
    used_sources, used_targets, kept = set(), set(), []
    for place in np.argsort(-scores):
        source, target = sources[place], targets[place]
        if source not in used_sources and target not in used_targets:
            used_sources.add(source)
            used_targets.add(target)
            kept.append(place)
    return sources[kept], targets[kept], scores[kept]


def main():
    start = time.perf_counter()
    x, y = np.load(sys.argv[1]), np.load(sys.argv[2])
    k = int(sys.argv[3])
    forward_similarities, forward = search(x, y, k)
    backward_similarities, backward = search(y, x, k)
    searched = time.perf_counter()
    x_means, y_means = forward_similarities.mean(axis=1), backward_similarities.mean(axis=1)
    forward_scores = score(x, y, forward, x_means, y_means)
    backward_scores = score(y, x, backward, y_means, x_means)
    pairs = choose(forward, backward, forward_scores, backward_scores)
    end = time.perf_counter()
    np.savez(sys.argv[4], sources=pairs[0], targets=pairs[1], scores=pairs[2])
    json.dump({"search": searched - start, "mine": end - searched}, sys.stdout)


if __name__ == "__main__":
    main()
