"""The README's five minutes at the published size, from an empty environment to a query, timed.

    python -m benchmarks.models.strangers_path VOCAB PAIRS.tsv --peer PEER/bin/python --out DIR

Random weights stand in for the published ones: 12 layers of 768, 501,153 rows, VOCAB filled up with
unused tokens, made by Hugging Face's library in PEER, the environment of
benchmarks/peers/requirements-sentence-transformers.txt. PAIRS.tsv has English, a tab, and another
language, whose code is the file's name; 10,000 lines of it are used, once. Prints Markdown: each
command as it is typed in DIR, its seconds, and the peak memory of its largest process.
"""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import machine
from labse_tf.files.textio import read_lines
from vocab import wordpiece_file

ROOT = Path(__file__).parents[2]
_ROWS, _PAIRS = 501_153, 10_000
# By step, {NAME} filled in; SERVE runs until QUERY was answered.
_SERVE, _QUERY = "serve", "query"
_STEPS = {
    "environment": "python3 -m venv env",
    "install": "env/bin/pip install --quiet '{wheel}[train,beam]'",
    "import, two languages": (
        "env/bin/labse import-hf LaBSE --out small --languages en,{language} --language-text pairs"
    ),
    "fine-tune": (
        "env/bin/labse train configs/finetune.yaml --run-dir run --init small"
        " --set train.bitext=[pairs] --set train.steps={steps}"
    ),
    "export": "env/bin/labse export run --out mine --format hub,onnx",
    "server's environment": "python3 -m venv light",
    "install there": "light/bin/pip install --quiet {wheel} fastapi uvicorn",
    _SERVE: (
        "env LABSE_MODEL=mine/onnx/model_int8.onnx"
        " light/bin/uvicorn --app-dir {root}/examples/serve app:app --port {port}"
    ),
    _QUERY: (
        "light/bin/python {root}/examples/serving_client.py"
        " http://localhost:{port}/v1/models/labse:predict 'Good morning!' {text}"
    ),
}
_BATCH = 64  # Of finetune.yaml.


def prepare(args: argparse.Namespace) -> None:
    """Writes the Hugging Face LaBSE, the pairs and the wheel."""
    tokens = wordpiece_file.rename_misread(wordpiece_file.read(args.vocab))
    known = set(tokens)
    unused = (f"[unused{number}]" for number in itertools.count())
    tokens += itertools.islice((one for one in unused if one not in known), _ROWS - len(tokens))
    vocab = args.out / "vocab.txt"
    wordpiece_file.write(vocab, tokens)
    peer = (args.peer, "-m", "benchmarks.peers.huggingface")
    subprocess.run([*peer, "make", vocab, args.out / "LaBSE", "12"], check=True, cwd=ROOT)
    lines = itertools.islice(read_lines(args.pairs), _PAIRS)
    (args.out / "pairs").mkdir()
    pairs = args.out / "pairs" / args.pairs.name
    pairs.write_text("".join(f"{line}\n" for _, line in lines), "utf-8")
    wheel = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", ".", "-w", args.out)
    subprocess.run(wheel, check=True, cwd=ROOT)


def start(command: str, folder: Path, log: Path) -> subprocess.Popen:
    """Starts a shell command that replaces the shell."""
    with log.open("a", encoding="utf-8") as output:
        # With this checkout on its path, pip would find the package installed.
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        line = f"exec {command}"
        return subprocess.Popen(
            line, shell=True, cwd=folder, env=variables, stdout=output, stderr=output
        )


def finish(process: subprocess.Popen) -> float:
    """Waits for a process; returns the peak memory of it and of its children, GB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1e6


def wait_for(port: int, server: subprocess.Popen) -> None:
    while server.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server has ended")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vocab", type=Path, metavar="VOCAB")
    parser.add_argument("pairs", type=Path, metavar="PAIRS.tsv")
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--port", type=int, default=8501)
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    args.out = args.out.resolve()
    prepare(args)
    values = {
        "wheel": next(args.out.glob("*.whl")).name,
        "language": args.pairs.stem,
        "steps": _PAIRS // _BATCH,
        "root": ROOT,
        "port": args.port,
        "text": repr(next(read_lines(args.out / "pairs" / args.pairs.name))[1].split("\t")[1]),
    }
    print(f"{machine.describe()}\n\n| step | command | seconds | peak memory, GB |")
    print("|---|---|---|---|", flush=True)
    server = None
    for name, command in _STEPS.items():
        command = command.format_map(values)
        log = args.out / f"{name}.log"
        begin = time.perf_counter()
        process = start(command, args.out, log)
        if name == _SERVE:
            server = process
            wait_for(args.port, server)
            memory = float("nan")
        else:
            memory = finish(process)
        seconds = time.perf_counter() - begin
        print(f"| {name} | `{command}` | {seconds:.1f} | {memory:.2f} |", flush=True)
        if process is not server and process.returncode:
            raise SystemExit(f"failed: see {log}")
    server.terminate()
    print(f"\nThe server's peak memory: {finish(server):.2f} GB. The answer:\n")
    print((args.out / f"{_QUERY}.log").read_text("utf-8"))


if __name__ == "__main__":
    main()
