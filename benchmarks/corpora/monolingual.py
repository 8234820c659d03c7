"""Throughput and memory of `labse corpus filter-monolingual` on millions of lines.

    python -m benchmarks.corpora.monolingual [INPUT ...] [--lines N] [--processes N] [OPTION ...]

INPUT is files or folders of monolingual text or bitext, of which the foreign side is used; without
any it is the demo corpus, from installed packages. If there is less text than --lines, it is
repeated, with a serial number before each line so that few lines are duplicates. Other options are
passed to the command: `--identify`, `--c4`, `--split-sentences`, `--quality MODEL`.

Prints lines and megabytes of text per second, including the start of the processes, and the peak
resident memory of the main process and of the largest worker, as counted by Linux.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from beam_pipelines.reading.readers import read_file
from benchmarks import machine
from labse_tf.cli.main import quiet_libraries
from labse_tf.demo.corpus.write import write_demo_corpus
from labse_tf.files.corpus_files import CorpusFile, find_corpus_files

_LINES_PER_FILE = 100_000
_SECONDS_BETWEEN_LOOKS = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="*", metavar="INPUT")
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--processes", type=int, default=2)
    args, options = parser.parse_known_args()
    quiet_libraries()
    with tempfile.TemporaryDirectory(prefix="labse-bench-") as name:
        folder = Path(name)
        if not args.inputs:
            write_demo_corpus(folder / "demo")
        files = find_corpus_files(args.inputs or [str(folder / "demo")])
        megabytes = write_corpus(files, folder / "text", args.lines) / 1e6
        command = [sys.executable, "-m", "labse_tf.cli.main", "corpus", "filter-monolingual"]
        command += [str(folder / "text"), "--out", str(folder / "out"), *options]
        command += ["--", "--direct_running_mode=multi_processing"]
        command += [f"--direct_num_workers={args.processes}"]
        start = time.perf_counter()
        peaks = run_watched(command)
        seconds = time.perf_counter() - start
    own, *workers = peaks
    print(f"{machine.describe()}, Python {platform.python_version()}")
    print(f"{args.lines} lines, {megabytes:.0f} MB; {' '.join(options) or 'default options'}")
    print(f"{seconds:.0f} s: {args.lines / seconds:.0f} lines/s, {megabytes / seconds:.2f} MB/s")
    print(
        f"peak memory: main process {own / 1e9:.2f} GB, "
        f"largest of {len(workers)} workers {max(workers, default=0) / 1e9:.2f} GB"
    )


def write_corpus(files: list[CorpusFile], folder: Path, lines: int) -> int:
    """Writes files of at most 100,000 lines; returns the bytes of their text."""
    size = 0
    with contextlib.ExitStack() as stack:
        streams, counts = {}, collections.Counter()
        for language, line in itertools.islice(_lines(files), lines):
            if counts[language] % _LINES_PER_FILE == 0:
                place = folder / str(counts[language] // _LINES_PER_FILE)
                place.mkdir(parents=True, exist_ok=True)
                if language in streams:
                    streams[language].close()
                path = place / f"{language}.txt"
                streams[language] = stack.enter_context(open(path, "w", encoding="utf-8"))
            streams[language].write(f"{line}\n")
            counts[language] += 1
            size += len(line.encode("utf-8"))
    return size


def _lines(files: list[CorpusFile]) -> Iterator[tuple[str, str]]:
    for serial in itertools.count():
        for file in files:
            for record in read_file(file):
                *_, text, language = record
                yield language, f"{serial} {text}" if serial else text


def run_watched(command: list[str]) -> list[int]:
    """Runs a command; returns the peak resident bytes of its process and of each descendant."""
    peaks: dict[int, int] = {}
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(process.pid)
                for member in (root, *root.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        # Intermediate shells are not workers.
                        if member.name() != "sh":
                            now = member.memory_info().rss
                            peaks[member.pid] = max(peaks.get(member.pid, 0), now)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        sys.exit(process.returncode)
    own = peaks.pop(process.pid, 0)
    return [own, *peaks.values()]


if __name__ == "__main__":
    main()
