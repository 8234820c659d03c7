"""An imported LASER against LASER's own way in PyTorch: the same vectors, and sentences per second.

    python -m benchmarks.models.laser TEXTS --peer PEER/bin/python --out DIR [--sentences 20000]

PEER is the environment of benchmarks/peers/requirements-sentence-transformers.txt. It saves random
weights of the published sizes (five layers of 512 a direction, 50,000 pieces learned on TEXTS),
which `labse import-laser` imports. Both embed the first sentences of TEXTS on all cores, in
processes of their own, in turns; loading and a first batch are not timed. Ours includes the
tokenisation, the peer reads our ids. Prints Markdown, and how much of our batches is padding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import machine, timed
from labse_tf.embedding.windows import SortingEncoder
from labse_tf.files.textio import read_lines

_PEER = "benchmarks.peers.laser_encoder"
_WARM_UP = 64
_FORMATS = {"SavedModel": "", "ONNX": "onnx/model.onnx", "ONNX, int8": "onnx/model_int8.onnx"}


class _Places(SortingEncoder):
    """Counts the places of the batches that texts of given lengths are embedded in."""

    dim = 1
    sequence_length = 512
    _special_tokens = 0  # The lengths include them.

    def __init__(self) -> None:
        self.count = 0

    def _tokenize(self, texts):
        return np.array([int(text) for text in texts])

    def _lengths(self, tokens):
        return tokens

    def _embed(self, tokens, rows, length):
        self.count += len(rows) * length
        return np.ones((len(rows), 1))


def padding(lengths: np.ndarray) -> float:
    """Returns the share of our batches' places that is padding."""
    places = _Places()
    places.encode([str(length) for length in lengths])
    return 1 - np.minimum(lengths, places.sequence_length).sum() / places.count


def make(args: argparse.Namespace) -> None:
    """Writes laser.spm, laser.pt, the model dir and the peer's ids."""
    from labse_tf.systems.laser.tokenizer import END, LaserTokenizer
    from labse_tf.systems.laser.torch_files import read_torch_file
    from vocab import bpe

    out: Path = args.out
    texts = out / "texts" / "en.txt"
    texts.parent.mkdir(parents=True, exist_ok=True)
    lines = [text for _, text in islice(read_lines(args.texts), 10 * args.sentences) if text]
    texts.write_text("".join(f"{line.lower()}\n" for line in lines), "utf-8")
    timed.labse("vocab", "bpe", texts, "--out", out / "bpe.txt", "--overwrite")
    tokens = (out / "bpe.txt").read_text("utf-8").splitlines()
    (out / "laser.spm").write_bytes(bpe.model_of(tokens))
    dictionary = {token: number for number, token in enumerate(tokens[104:], 4)}
    (out / "dictionary.json").write_text(json.dumps(dictionary), "utf-8")
    timed.run(args.peer, "-m", _PEER, "make", out / "dictionary.json", out / "laser.pt")
    files = (out / "laser.pt", out / "laser.spm")
    formats = ("--format", "hub,onnx", "--no-verify", "--overwrite")
    timed.labse("import-laser", *files, "--out", out / "model", *formats)
    import tensorflow as tf

    lines = lines[: args.sentences]
    (out / "few.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    tokenizer = LaserTokenizer(files[1], read_torch_file(files[0])["dictionary"])
    ids = tokenizer(tf.constant(lines))[:, :511]
    ids = tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1)
    np.savez(out / "ids.npz", flat=ids.flat_values.numpy(), lengths=ids.row_lengths().numpy())


def embed_once(model: str, texts: str, out: str) -> None:
    """Embeds the texts and prints the seconds."""
    import labse_tf

    sentences = [text for _, text in read_lines(texts)]
    encode = labse_tf.load(model).encode
    encode(sentences[:_WARM_UP])
    start = time.perf_counter()
    vectors = encode(sentences)
    print(time.perf_counter() - start)
    np.save(out, vectors)


def _seconds(*command: object) -> float:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-3000:]}")
    return float(done.stdout.split()[-1])


def compare(args: argparse.Namespace) -> None:
    out: Path = args.out
    peer = (args.peer, "-m", _PEER, "time", out / "laser.pt", out / "ids.npz")
    ours = (sys.executable, "-m", "benchmarks.models.laser", "--one")
    times: dict[str, list[float]] = {}
    for turn in range(args.turns):
        times.setdefault("PyTorch", []).append(_seconds(*peer, out / "PyTorch.npy"))
        for name, file in _FORMATS.items():
            command = (*ours, out / "model" / file, out / "few.txt", out / f"{name}.npy")
            times.setdefault(name, []).append(_seconds(*command))
        print(f"turn {turn + 1}: { {name: round(one[-1], 1) for name, one in times.items()} }")
    lengths = np.load(out / "ids.npz")["lengths"]
    theirs = np.load(out / "PyTorch.npy")
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    print(
        f"\n{machine.describe()}; {len(lengths)} sentences of {lengths.mean():.1f} tokens; "
        f"padding {100 * padding(lengths):.1f} %\n"
    )
    print("| | sentences/s | times PyTorch | furthest from its vectors |")
    print("|---|---|---|---|")
    for name, seconds in times.items():
        rate = len(lengths) / median(seconds)
        ratio = median(times["PyTorch"]) / median(seconds)
        apart = 0.0 if name == "PyTorch" else np.abs(np.load(out / f"{name}.npy") - theirs).max()
        print(f"| {name} | {rate:.1f} | {ratio:.2f} | {apart:.1e} |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", type=Path, metavar="TEXTS")
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args(arguments)
    if not (args.out / "ids.npz").exists():
        make(args)
    compare(args)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        embed_once(*sys.argv[2:])
    else:
        main()
