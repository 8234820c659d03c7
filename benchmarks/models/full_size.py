"""The cost of exporting, verifying, loading and tokenising for a LaBSE of the paper's size.

    python -m benchmarks.models.full_size VOCAB TEXTS --peer PEER/bin/python [--formats hub hf lite]

Random weights, 12 layers of 768, 501,153 rows; VOCAB has at most as many tokens, TEXTS one text per
line. Each step runs in its own process, whose seconds and peak resident memory are printed. Then
tokenises and packs TEXTS on all cores, alternating with Hugging Face's `tokenizers`, provided both
produce the same tokens; PEER is the environment of
benchmarks/peers/requirements-sentence-transformers.txt. Prints Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import machine
from benchmarks.peers.same_work import check_tokens

_PEER = "benchmarks.peers.huggingface"
_LENGTH = 128
_LINES_PER_BATCH = 1000
# Name -> options of `export`.
_EXPORTS = {
    "hub": {"formats": ("hub",)},
    "text": {"formats": ("text",)},
    "float16": {"formats": ("hub",), "table": "float16"},
    "int8": {"formats": ("hub",), "table": "int8"},
    "hf": {"formats": ("hf",)},
    "lite": {"formats": ("lite",)},
    "onnx": {"formats": ("onnx",)},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vocab", metavar="VOCAB")
    parser.add_argument("texts", metavar="TEXTS")
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    parser.add_argument("--rows", default="501153")
    parser.add_argument("--layers", default="12")
    parser.add_argument("--formats", nargs="*", choices=_EXPORTS, default=list(_EXPORTS))
    parser.add_argument("--turns", type=int, default=3, help="of tokenising")
    args = parser.parse_args()
    print(f"{machine.describe()}\n\n| | seconds | peak memory, GB | on disk, MB |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "hub")
        if "hub" not in args.formats:
            _ours("export", args.vocab, args.rows, args.layers, "hub", whole)
        for name in args.formats:
            out = Path(folder, name)
            done = _ours("export", args.vocab, args.rows, args.layers, name, out)
            _row(f"export, {name}", *done, _megabytes(out))
            if out != whole:
                shutil.rmtree(out)
        _row("verify", *_run([sys.executable, "-m", "labse_tf.cli.main", "verify", whole]))
        for part in ("preprocessor", "encoder"):
            _row(f"load, {part}", *_ours("load", whole / part), _megabytes(whole / part))
        _check_tokens(args)
        ours, theirs = [], []
        for _ in range(args.turns):
            ours.append(_ours("tokenize", whole, args.texts)[0])
            peer = [args.peer, "-m", _PEER, "time", args.vocab, args.texts, _LENGTH]
            theirs.append(_run(peer)[0])
    lines = Path(args.texts).read_text("utf-8").count("\n")
    print(f"\ntokenised and packed: {lines / median(ours):,.0f} texts a second,", end=" ")
    print(f"tokenizers {lines / median(theirs):,.0f}: {median(theirs) / median(ours):.2f} times")


def _check_tokens(args: argparse.Namespace) -> None:
    # Imported late: a child's peak memory is reported as no less than its parent's at its start.
    from benchmarks.peers.tokens import UNKNOWN, tokens_of_both

    rows = tokens_of_both(args.peer, Path(args.vocab), Path(args.texts))
    check_tokens(*zip(*rows, strict=True), UNKNOWN)


def _ours(*arguments: object) -> tuple[float, float]:
    return _run([sys.executable, "-m", "benchmarks.models.full_size", *arguments])


def _run(command: list[object]) -> tuple[float, float]:
    """Returns the seconds that a process prints last, or took, and its peak memory in GB."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        start = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(process.args)} ended with {process.returncode}")
        output.seek(0)
        last_line = output.read().strip().rpartition("\n")[2]
    with contextlib.suppress(ValueError):
        seconds = float(last_line)
    return seconds, usage.ru_maxrss / 1e6


def _row(name: str, seconds: float, gigabytes: float, megabytes: float | None = None) -> None:
    size = "" if megabytes is None else f"{megabytes:,.0f}"
    print(f"| {name} | {seconds:,.1f} | {gigabytes:.1f} | {size} |", flush=True)


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _export(vocab: str, rows: str, layers: str, name: str, out: str) -> None:
    from export.model_dir import export
    from export.source import Source
    from labse_tf.config import EncoderConfig
    from labse_tf.model.encoder import build_encoder
    from labse_tf.model.huggingface_bert import MAX_BYTES_PER_WORD
    from vocab import wordpiece_file

    config = EncoderConfig(vocab_size=int(rows), num_layers=int(layers))
    tokens = wordpiece_file.read(vocab)
    source = Source(build_encoder(config), config, tokens, MAX_BYTES_PER_WORD, None, None)
    start = time.perf_counter()
    export(source, out, verified=False, **_EXPORTS[name])
    print(time.perf_counter() - start)


def _load(path: str) -> None:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  The preprocessor's ops.

    start = time.perf_counter()
    model = tf.saved_model.load(path)
    if path.endswith("preprocessor"):
        model(tf.constant(["one"]))
    print(time.perf_counter() - start)


def _tokenize(model_dir: str, texts: str) -> None:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  The preprocessor's ops.

    preprocessor = tf.saved_model.load(os.path.join(model_dir, "preprocessor"))
    lines = tf.constant(Path(texts).read_text("utf-8").split("\n")[:-1])
    batches = tf.data.Dataset.from_tensor_slices(lines).batch(_LINES_PER_BATCH)
    start = time.perf_counter()
    for _ in batches.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE):
        pass
    print(time.perf_counter() - start)


if __name__ == "__main__":
    commands = {"export": _export, "load": _load, "tokenize": _tokenize}
    if sys.argv[1:2] and sys.argv[1] in commands:
        commands[sys.argv[1]](*sys.argv[2:])
    else:
        main()
