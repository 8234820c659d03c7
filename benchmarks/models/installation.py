"""What it takes to get the first vectors: installed size, time and memory, beside a peer.

    python -m benchmarks.models.installation ONNX_FILE PEER_MODEL --peer PEER/bin/python

Installs this checkout without extras in an empty environment. PEER has sentence-transformers, as
pip installs it, and PEER_MODEL is a folder of that library with an encoder of the same size. Each
process imports the library, loads the model and embeds two sentences, on one core; the least of
five times counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import machine

_RUNS = 5
_OURS = """
import labse_tf
imported()
vectors = labse_tf.load(model).encode(["Hello", "Hallo"])
"""
_PEER = """
from sentence_transformers import SentenceTransformer
imported()
vectors = SentenceTransformer(model, device="cpu").encode(["Hello", "Hallo"])
"""
_FRAME = """
import json, resource, sys, time
model, start, times = sys.argv[1], time.perf_counter(), []
def imported():
    times.append(time.perf_counter() - start)
{code}
times.append(time.perf_counter() - start)
assert vectors.shape[0] == 2
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([*times, memory, vectors.shape[1]]))
"""


def measure(python: Path, model: Path, code: str) -> list[float]:
    """Returns seconds of the import, seconds until the vectors, MB of memory, and the dimension."""
    command = ["taskset", "-c", "0", str(python), "-c", _FRAME.format(code=code), str(model)]
    found = []
    for _ in range(_RUNS):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return [min(column) for column in zip(*found, strict=True)]


def installed(python: Path) -> float:
    """Returns the MB of an environment's packages, without the installers."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    ours = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
    files = (path for path in folder.rglob("*") if path.relative_to(folder).parts[0] not in ours)
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="ONNX_FILE")
    parser.add_argument("peer_model", type=Path, metavar="PEER_MODEL")
    parser.add_argument("--peer", type=Path, required=True, metavar="PYTHON")
    args = parser.parse_args()
    print(json.dumps(machine.describe()))
    print("| | installed, MB | import, s | first vectors, s | memory, MB | dimension |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        light = Path(temporary) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", temporary], check=True)
        subprocess.run([light, "-m", "pip", "install", "--quiet", "."], check=True)
        for name, python, model, code in (
            ("labse-tf", light, args.model.resolve(), _OURS),
            ("sentence-transformers", args.peer.absolute(), args.peer_model.resolve(), _PEER),
        ):
            start, vectors, memory, dim = measure(python, model, code)
            size = installed(python)
            print(f"| {name} | {size:.0f} | {start:.2f} | {vectors:.2f} | {memory:.0f} | {dim} |")


if __name__ == "__main__":
    main()
