"""The same Beam jobs on the direct runner and on a Flink cluster: equal bytes, time and memory.

    scripts/flink.sh install && scripts/flink.sh start
    LABSE_FLINK_JOB_SERVER=.flink/beam-flink-server.jar python -m benchmarks.corpora.engines \\
        --pairs PAIRS ... --text TEXT ... --flink 127.0.0.1:8081 --out DIR

Jobs: filter-bitext on the pairs, filter-monolingual on the text, and the word counts of both, or
those named by --only. Each runs on the direct runner with one worker process and with two, or as
many as --workers says (none: `--workers 0`), and on the cluster as it is. Outputs stay in DIR, and
every one is compared with the first, file by file, also with that of an earlier call, such as
before starting the cluster with TASKMANAGERS=1; a difference ends with an error. Prints records per
second of wall time, start included, and the peak of the resident memory of the command, of its
largest worker process, and of the largest TaskManager.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks import machine
from labse_tf.files.hashing import sha256_of_files

JOBS = ("filter-bitext", "filter-monolingual", "vocab build")
_DIRECT = "--direct_running_mode=multi_processing"
_SECONDS_BETWEEN_LOOKS = 0.5


class Peaks(NamedTuple):
    """Peak resident bytes: of the command, of its largest worker, of the largest TaskManager."""

    command: int
    worker: int
    task_manager: int


class Job(NamedTuple):
    """A command, the name of the option for its output, and how many records it read."""

    arguments: list[str]
    count: Callable[[Path], int]
    counts: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", nargs="+", metavar="PATH", default=[])
    parser.add_argument("--text", nargs="+", metavar="PATH", default=[])
    parser.add_argument("--flink", metavar="HOST:PORT")
    parser.add_argument("--only", nargs="+", metavar="JOB", choices=JOBS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    engines = {}
    for workers in filter(None, args.workers):
        name = f"direct, {workers} worker{'s' * (workers > 1)}"
        engines[name] = [_DIRECT, f"--direct_num_workers={workers}"]
    if args.flink:
        flink = ["--runner=FlinkRunner", f"--flink_master={args.flink}", "--shared-filesystem"]
        engines["Flink"] = flink
    pairs, text = (
        [str(Path(path).resolve()) for path in paths] for paths in (args.pairs, args.text)
    )
    jobs = {
        "filter-bitext": Job(["corpus", "filter-bitext", *pairs, "--scores"], _read),
        "filter-monolingual": Job(["corpus", "filter-monolingual", *text], _read),
        "vocab build": Job(["vocab", "build", *pairs, *text], _words, counts=True),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    print(machine.describe())
    print("| job | engine | seconds | records/s | command MB | worker MB | TaskManager MB |")
    print("|---" * 7 + "|")
    different = []
    for name in args.only or JOBS:
        job = jobs[name]
        for engine, options in engines.items():
            out = args.out / f"{name} {engine}".replace(" ", "_").replace(",", "")
            seconds, peaks = _run(job, out, options)
            megabytes = " | ".join(f"{peak / 1e6:,.0f}" for peak in peaks)
            rate = job.count(out) / seconds
            print(f"| {name} | {engine} | {seconds:.0f} | {rate:,.0f} | {megabytes} |", flush=True)
            if not _equal_to_first(args.out / f"{name.replace(' ', '_')}.sha256", out):
                different.append(f"{name} on {engine}")
    if different:
        sys.exit(f"different bytes: {', '.join(different)}")
    print("all outputs of a job are equal, byte by byte")


def _run(job: Job, out: Path, options: Sequence[str]) -> tuple[float, Peaks]:
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "labse_tf.cli.main", *job.arguments]
    if job.counts:
        out.mkdir()
        command += ["--vocab-size", "60000", "--counts", str(out / "counts")]
        command += ["--out", str(out / "vocab.txt")]
    else:
        command += ["--out", str(out)]
    start = time.perf_counter()
    with subprocess.Popen([*command, "--", *options], stdout=subprocess.DEVNULL) as process:
        peaks = _watch(process)
    if process.returncode:
        sys.exit(process.returncode)
    return time.perf_counter() - start, peaks


def _watch(process: subprocess.Popen) -> Peaks:
    managers = [one for one in psutil.process_iter() if "TaskManagerRunner" in _command_of(one)]
    own, worker, manager = 0, 0, 0
    while process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(process.pid)
            own = max(own, _resident(root))
            parents = [root, *managers]
            workers = [child for parent in parents for child in parent.children(recursive=True)]
            workers = [one for one in workers if "java" not in _command_of(one)]
            worker = max([worker, *map(_resident, workers)])
        manager = max([manager, *map(_resident, managers)])
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return Peaks(own, worker, manager)


def _command_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return process.memory_info().rss
    return 0


def _read(out: Path) -> int:
    return json.loads((out / "report.json").read_text("utf-8"))["total"]["read"]


def _words(out: Path) -> int:
    totals = json.loads((out / "counts" / "totals.json").read_text("utf-8"))
    return sum(language.get("words", 0) for language in totals.values())


def _equal_to_first(kept: Path, out: Path) -> bool:
    """Compares an output with the job's first one, all but the state of the inputs."""
    files = [path for path in out.rglob("*") if path.is_file()]
    files = [path for path in files if path.name != "settings.json"]
    digest = sha256_of_files(files, root=out)
    if not kept.exists():
        kept.write_text(digest + "\n", "utf-8")
    return kept.read_text("utf-8").strip() == digest


if __name__ == "__main__":
    main()
