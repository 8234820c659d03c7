"""Speed and memory of mining pairs from vectors, compared with LASER's method.

    python -m benchmarks.mining.speed race SOURCE.npy TARGET.npy [--turns 2]
    python -m benchmarks.mining.speed race --mixture 200000 --folder vectors [--rows 20000]
    python -m benchmarks.mining.speed large --mixture 1000000 --folder vectors

`race` alternates the exact search of `labse mine` and `peers/laser_mining.py`, each in a new
process, and prints seconds, the ratios (on a busy machine, the ratio of CPU times is more reliable
than that of wall times), the peak memory of each, and the share of the peer's pairs that ours
finds; too small a share ends it with an error. `large` runs ours alone with the approximate index,
and measures its recall against the exact neighbours of 2,000 queries. --mixture N makes vectors,
see `benchmarks/mining/vectors.py`; --rows uses the first rows of each file. --out writes the
figures as JSON too.

Memory is the peak of the resident set, and of its part that is not file-backed (the kernel can
reclaim pages of a file when other processes need memory).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import make_parser
from benchmarks.peers.same_work import check_found

_PEER = Path(__file__).parents[1] / "peers" / "laser_mining.py"
_QUERIES = 2000


def main() -> None:
    numbers = {"dim": 768, "neighbours": 4, "recall": 0.95, "turns": 2}
    paths = {"folder": Path("mining_vectors"), "out": Path}
    parser = make_parser(__doc__, mixture=int, rows=int, index="exact", **numbers, **paths)
    parser.add_argument("mode", choices=["race", "large", "ours"])
    parser.add_argument("vectors", nargs="*", metavar="FILE.npy")
    args = parser.parse_args()
    if args.mode == "ours":
        ours(args)
        return
    with tempfile.TemporaryDirectory(dir=args.folder.parent) as scratch:
        result = (race if args.mode == "race" else large)(args, Path(scratch))
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def race(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    paths = _vectors(args, scratch)
    turns: dict[str, list[dict[str, float]]] = {"ours": [], "laser": []}
    for _ in range(args.turns):
        turns["ours"].append(_run(_our_command(args, paths, scratch, "exact")))
        peer = [sys.executable, _PEER, *paths, str(args.neighbours), scratch / "laser.npz"]
        turns["laser"].append(_run(peer))
    pairs = {name: np.load(scratch / f"{name}.npz") for name in turns}
    found, wanted = (
        set(zip(some["sources"].tolist(), some["targets"].tolist(), strict=True))
        for some in (pairs["ours"], pairs["laser"])
    )
    share = len(found & wanted) / max(len(wanted), 1)
    check_found(share)
    both = list(zip(turns["ours"], turns["laser"], strict=True))
    ratios = {
        measure: [round(peer[measure] / own[measure], 2) for own, peer in both]
        for measure in ("seconds", "process_cpu_seconds")
    }
    return {
        "rows": [len(np.load(path, mmap_mode="r")) for path in paths],
        "turns": turns,
        "ratio": ratios,
        "pairs": len(wanted),
        "share_of_their_pairs": share,
    }


def large(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    paths = _vectors(args, scratch)
    own = _run(_our_command(args, paths, scratch, "approximate"))
    kept = np.load(scratch / "ours.npz")
    return own | {"recall": _recall(paths, kept, args.neighbours)}


def _vectors(args: argparse.Namespace, scratch: Path) -> list[Path]:
    if args.mixture:
        from benchmarks.mining.vectors import write_mixture

        paths = list(write_mixture(args.folder, args.mixture, args.dim))
    else:
        paths = [Path(path) for path in args.vectors]
    if not args.rows:
        return paths
    cut = [scratch / f"{name}.npy" for name in ("source", "target")]
    for path, to in zip(paths, cut, strict=True):
        np.save(to, np.load(path, mmap_mode="r")[: args.rows])
    return cut


def _our_command(args, paths: list[Path], scratch: Path, index: str) -> list:
    options = ["--neighbours", args.neighbours, "--index", index, "--recall", args.recall]
    out = ["--out", scratch / "ours.npz"]
    return [sys.executable, "-m", "benchmarks.mining.speed", "ours", *paths, *options, *out]


def _run(command: list) -> dict[str, float]:
    """Runs a process that prints a JSON object; returns the object with peaks of its memory."""
    start, before = time.perf_counter(), _cpu_seconds()
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    watched, resident, own = psutil.Process(process.pid), 0, 0
    while process.poll() is None:
        try:
            memory = watched.memory_info()
        except psutil.NoSuchProcess:
            break
        resident, own = max(resident, memory.rss), max(own, memory.rss - memory.shared)
        time.sleep(0.1)
    if process.wait():
        raise SystemExit(f"failed: {command}")
    facts = json.loads(process.stdout.read())
    seconds = facts["search"] + facts["mine"]
    return facts | {
        "seconds": round(seconds, 2),
        "process_seconds": round(time.perf_counter() - start, 2),
        "process_cpu_seconds": round(_cpu_seconds() - before, 2),
        "peak_resident_mb": round(resident / 1e6),
        "peak_not_files_mb": round(own / 1e6),
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(args: argparse.Namespace) -> None:
    """Goes from vectors on disk to pairs as `labse mine` does; runs in its own process."""
    from labse_tf.cli.main import quiet_libraries
    from labse_tf.retrieval.mining import mine_pairs
    from labse_tf.retrieval.search import search_both
    from labse_tf.retrieval.vectors import open_vectors

    quiet_libraries()
    start = time.perf_counter()
    vectors = [open_vectors(path) for path in args.vectors]
    with tempfile.TemporaryDirectory(dir=args.out.parent) as folder:
        forward, backward, facts = search_both(
            *vectors, args.neighbours, Path(folder), index=args.index, recall=args.recall
        )
    searched = time.perf_counter()
    pairs = mine_pairs(forward, backward)
    end = time.perf_counter()
    np.savez(
        args.out,
        sources=pairs.sources,
        targets=pairs.targets,
        forward=forward.indices,
        backward=backward.indices,
    )
    json.dump(facts | {"search": searched - start, "mine": end - searched}, sys.stdout)


def _recall(paths: list[Path], kept, k: int) -> dict[str, float]:
    from labse_tf.retrieval.neighbours import nearest
    from labse_tf.retrieval.vectors import open_vectors

    sides = [open_vectors(path) for path in paths]
    shares = {}
    for name, (own, others) in (("forward", sides), ("backward", sides[::-1])):
        rows = np.sort(np.random.default_rng(5).choice(len(own), _QUERIES, replace=False))
        true = nearest(own[rows], others, k).indices
        found = kept[name][rows]
        hits = (true[:, :, np.newaxis] == found[:, np.newaxis, :]).any(axis=2)
        shares |= {name: float(hits.mean()), f"{name}_nearest": float(hits[:, 0].mean())}
    return shares


if __name__ == "__main__":
    main()
