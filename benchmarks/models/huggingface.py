"""Compares a Hugging Face LaBSE with its import and its export: vectors and tokens.

    python -m benchmarks.models.huggingface VOCAB TEXTS --peer PEER/bin/python [--layers 12]

Makes a LaBSE with random weights with PyTorch (768 wide, one row per token of VOCAB), imports it,
exports it again, and compares the vectors of 200 lines of TEXTS. Then compares the token ids of all
lines with those of Hugging Face's BertTokenizerFast, lists the differences by kind, and ends with
an error if one is of unknown kind. PEER is the environment of
benchmarks/peers/requirements-sentence-transformers.txt.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

import labse_tf
from benchmarks import make_parser
from benchmarks.peers.same_work import check_tokens, exception_of
from benchmarks.peers.tokens import PEER, UNKNOWN, tokens_of_both
from export.model_dir import export
from export.source import open_source
from vocab import wordpiece_file

_COMPARED = 200


def main() -> None:
    parser = make_parser(__doc__, "vocab", "texts", layers=12, tokens_only=False)
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    args = parser.parse_args()

    def peer(*arguments: object) -> None:
        subprocess.run([args.peer, "-m", PEER, *map(str, arguments)], check=True)

    with tempfile.TemporaryDirectory() as folder:
        tokens = wordpiece_file.rename_misread(wordpiece_file.read(args.vocab))
        args.vocab = Path(folder, "vocab.txt")
        wordpiece_file.write(args.vocab, tokens)
        if not args.tokens_only:
            _compare_vectors(Path(folder), args, peer)
        _compare_tokens(args)


def _compare_vectors(folder: Path, args: argparse.Namespace, peer) -> None:
    lines = args.texts.read_text("utf-8").split("\n")[:-1]
    chosen = np.random.default_rng(42).permutation(len(lines))[:_COMPARED]
    sentences = [lines[index] for index in sorted(chosen)]
    texts = folder / "texts.txt"
    texts.write_text("".join(f"{line}\n" for line in sentences), "utf-8")
    theirs, model, again = folder / "theirs", folder / "model", folder / "again"
    peer("make", args.vocab, theirs, args.layers)
    peer("embed", theirs, texts, folder / "theirs.npy")
    start = time.perf_counter()
    export(open_source(theirs), model, verified=False)
    print(f"import: {time.perf_counter() - start:.0f} s")
    ours = labse_tf.load(model).encode(sentences)
    export(open_source(model), again, formats=("hf",))
    peer("embed", again, texts, folder / "again.npy")
    expected = np.load(folder / "theirs.npy")
    same = np.array([one == other for _, one, other in tokens_of_both(args.peer, theirs, texts)])
    print(f"{same.sum()} of {len(sentences)} texts have the same tokens; of these")
    print(f"imported: largest difference {np.abs(ours - expected)[same].max():.1e}")
    difference = np.abs(np.load(folder / "again.npy") - expected).max()
    print(f"exported again, in PyTorch: largest difference of all {difference:.1e}")


def _compare_tokens(args: argparse.Namespace) -> None:
    kinds, examples = Counter(), defaultdict(list)
    rows = tokens_of_both(args.peer, args.vocab, args.texts)
    for line, ours, theirs in rows:
        if ours != theirs:
            kind = exception_of(line) or "another"
            kinds[kind] += 1
            examples[kind].append(line)
    print(f"tokens: {sum(kinds.values())} of {len(rows)} lines differ")
    for kind, count in kinds.most_common():
        print(f"{count:7}  {kind}: {examples[kind][0][:70]!r}")
    check_tokens(*zip(*rows, strict=True), UNKNOWN)


if __name__ == "__main__":
    main()
