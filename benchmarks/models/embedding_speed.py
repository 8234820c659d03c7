"""Sentences per second of ours, sentence-transformers and TF-Hub usage, with the same weights.

    python -m benchmarks.models.embedding_speed make VOCAB MODEL_DIR
    python -m benchmarks.models.embedding_speed time MODEL_DIR TEXTS --peer PEER/bin/python

`make` writes a BERT base with random weights (12 layers, 768 wide) as a model dir with the formats
that `time` needs: hub, hf and onnx. TEXTS has one sentence per line, of which the first 20,000 are
embedded; PEER is the environment of benchmarks/peers/requirements-sentence-transformers.txt. All
run on all cores, in their own processes, alternately; loading and a first batch are not timed,
tokenisation is.

The systems: `labse_tf.load(...)` with its SavedModel, with onnx/model.onnx and with
onnx/model_int8.onnx; sentence-transformers, which sorts by length itself, in batches of 32, its
default, and of 1,024, which suit models without layers; and usage as on TF-Hub, whose preprocessor
pads to 128 tokens, in batches of 32 of the first 600 sentences. Prints Markdown: ratios to
sentence-transformers, and how many vectors equal its own, among sentences with the same tokens in
both (docs/export.md explains which differ).
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import machine, make_parser
from benchmarks.peers.same_work import check_tokens
from benchmarks.peers.tokens import PEER, UNKNOWN, tokens_of_both
from labse_tf.files.textio import read_lines

_WARM_UP = 64
_BATCH = 32
_EQUAL = 1e-4
_OURS = {"SavedModel": "", "ONNX": "onnx/model.onnx", "ONNX, int8": "onnx/model_int8.onnx"}
_THEIRS, _PADDED = "sentence-transformers", "hub, padded to 128"
_THEIR_BATCHES = {_THEIRS: 32, "sentence-transformers, batches of 1,024": 1024}


def make(vocab: str, out: str) -> None:
    import tf_keras

    from export.model_dir import export
    from export.source import Source
    from labse_tf.config import EncoderConfig
    from labse_tf.model.encoder import build_encoder
    from labse_tf.model.huggingface_bert import MAX_BYTES_PER_WORD
    from vocab import wordpiece_file

    tokens = wordpiece_file.read(vocab)
    # Weights have a larger spread than for training, so that sentences differ more.
    config = EncoderConfig(vocab_size=len(tokens), initializer_range=0.05)
    tf_keras.utils.set_random_seed(1)
    source = Source(build_encoder(config), config, tokens, MAX_BYTES_PER_WORD, None, None)
    export(source, out, formats=("hub", "hf", "onnx"), verified=False)


def compare(args: argparse.Namespace) -> None:
    sentences = [
        text for _, text in itertools.islice(read_lines(args.texts), args.sentences) if text
    ]
    few = sentences[: args.padded_sentences]
    systems = {name: len(sentences) for name in (*_OURS, *_THEIR_BATCHES)} | {_PADDED: len(few)}
    systems = {name: size for name, size in systems.items() if name in args.systems}
    rates: dict[str, list[float]] = {name: [] for name in systems}
    print(f"{machine.describe()}; {len(sentences)} sentences")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, texts in (("all", sentences), ("few", few)):
            (folder / file).write_text("".join(f"{text}\n" for text in texts), "utf-8")
        same = _same_tokens(args, folder / "all")
        for turn, (system, size) in itertools.product(range(args.turns), systems.items()):
            texts = folder / ("few" if system == _PADDED else "all")
            seconds = _time(args, system, texts, folder / f"{system}.npy")
            rates[system].append(size / seconds)
            print(f"turn {turn + 1}: {system} {rates[system][-1]:.1f} sentences/s", flush=True)
        vectors = {system: np.load(folder / f"{system}.npy") for system in systems}
    _print(rates, vectors, same)


def _same_tokens(args: argparse.Namespace, texts: Path) -> np.ndarray:
    if not args.peer:
        return np.ones(args.sentences, bool)
    model_dir = Path(args.model_dir)
    rows = tokens_of_both(args.peer, model_dir, texts)
    check_tokens(*zip(*rows, strict=True), UNKNOWN)
    same = [one == other for _, one, other in rows]
    print(f"{sum(same)} of {len(same)} sentences have the same tokens in both")
    return np.array(same)


def _time(args: argparse.Namespace, system: str, texts: Path, out: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.models.embedding_speed", "one", system]
    arguments = [args.model_dir, texts, out]
    if system in _THEIR_BATCHES:
        command = [args.peer, "-m", PEER, "time_embed"]
        arguments.append(_THEIR_BATCHES[system])
    words = [str(part) for part in (*command, *arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{system}\n{done.stderr[-3000:]}")
    return float(done.stdout.split()[-1])


def _print(rates: dict[str, list[float]], vectors: dict[str, np.ndarray], same: np.ndarray) -> None:
    base = _THEIRS if _THEIRS in rates else next(iter(rates))
    print(f"\n| | sentences/s | times {base} | within {_EQUAL:g} | furthest | mean cosine |")
    print("|---|---|---|---|---|---|")
    for system, found in rates.items():
        compared = same[: len(vectors[system])]
        rows, own = (vectors[name][: len(compared)][compared] for name in (base, system))
        apart = np.abs(own - rows).max(axis=1)
        equal, most = (apart <= _EQUAL).sum(), apart.max()
        cosine = np.einsum("nd,nd->n", own, rows).mean()
        ratio = median(found) / median(rates[base])
        print(
            f"| {system} | {median(found):.1f} | {ratio:.2f} | {equal} of {len(rows)} | "
            f"{most:.1e} | {cosine:.5f} |"
        )


def embed_once(system: str, model_dir: str, texts: str, out: str) -> None:
    """Embeds the texts and prints the seconds."""
    sentences = [text for _, text in read_lines(texts)]
    if system == _PADDED:
        encode = _padded_encoder(model_dir)
    else:
        import labse_tf

        encode = labse_tf.load(Path(model_dir) / _OURS[system]).encode
    encode(sentences[:_WARM_UP])
    start = time.perf_counter()
    vectors = encode(sentences)
    print(time.perf_counter() - start)
    np.save(out, vectors)


def _padded_encoder(model_dir: str):
    """Returns an encoder used like google/LaBSE/2."""
    import tensorflow as tf
    import tensorflow_hub as hub
    import tensorflow_text  # noqa: F401  Registers the preprocessor's ops.

    preprocessor = hub.KerasLayer(f"{model_dir}/preprocessor")
    encoder = hub.KerasLayer(f"{model_dir}/encoder")

    def encode(texts):
        batches = tf.data.Dataset.from_tensor_slices(texts).batch(_BATCH)
        rows = (encoder(preprocessor(batch))["default"] for batch in batches)
        return np.concatenate([tf.math.l2_normalize(one, axis=1).numpy() for one in rows])

    return encode


def main() -> None:
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make")
    made.add_argument("vocab", metavar="VOCAB")
    made.add_argument("out", metavar="MODEL_DIR")
    time_parser = commands.add_parser("time")
    time_parser.add_argument("model_dir", metavar="MODEL_DIR")
    time_parser.add_argument("texts", metavar="TEXTS")
    time_parser.add_argument("--peer", metavar="PYTHON")
    for name, default in (("sentences", 20_000), ("padded-sentences", 600), ("turns", 2)):
        time_parser.add_argument(f"--{name}", type=int, default=default)
    names = (*_OURS, *_THEIR_BATCHES, _PADDED)
    time_parser.add_argument("--systems", nargs="+", choices=names, default=names)
    one_parser = commands.add_parser("one")
    for name in ("system", "model_dir", "texts", "out"):
        one_parser.add_argument(name)
    args = parser.parse_args()
    if args.command == "make":
        make(args.vocab, args.out)
    elif args.command == "time":
        compare(args)
    else:
        embed_once(args.system, args.model_dir, args.texts, args.out)


if __name__ == "__main__":
    main()
