"""A run dir becomes a model dir: preprocessor/, encoder/, model.json, README.md."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import labse_tf
from export.encoder import save_encoder
from export.model_card import model_card
from export.preprocessor import save_preprocessor
from labse_tf.errors import InputError
from labse_tf.outputs import whole_dir
from labse_tf.tokenization import Tokenizer
from labse_tf.training.checkpoints import Chosen, choose_checkpoint, load_encoder
from labse_tf.training.run_dir import RunDir

DEFAULT_LENGTH = 128


def export_run(
    run_dir: RunDir,
    out: str | os.PathLike[str],
    *,
    length: int | None = None,
    checkpoint: str | None = None,
    overwrite: bool = False,
) -> None:
    """Writes the model dir of a run's checkpoint.

    Args:
      run_dir: of `labse train` or `labse pretrain`.
      out: the model dir.
      length: static length of the preprocessor's result, tokens; at most `encoder.max_positions`.
        Left out, it is DEFAULT_LENGTH where these allow it.
      checkpoint: which one, as for `choose_checkpoint`.
      overwrite: replace what is at `out`.

    Raises:
      InputError: if the run has no checkpoint, the length does not fit, or `out` is taken.
    """
    config = run_dir.config
    if length is None:
        length = min(DEFAULT_LENGTH, config.encoder.max_positions)
    if not 3 <= length <= config.encoder.max_positions:
        raise InputError(
            f"--length {length} is out of range",
            remedy=f"choose from 3 to {config.encoder.max_positions} ('encoder.max_positions')",
        )
    chosen = choose_checkpoint(run_dir, checkpoint)
    with whole_dir(out, overwrite=overwrite) as partial, tempfile.TemporaryDirectory() as temporary:
        # An asset keeps the folder that it was read from in the graph: let that be a neutral one.
        vocab_file = Path(temporary) / "vocab.txt"
        shutil.copyfile(run_dir.vocab_file, vocab_file)
        tokenizer = Tokenizer(vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word)
        save_preprocessor(tokenizer, partial / "preprocessor", length=length)
        encoder = load_encoder(run_dir, checkpoint=chosen.path)
        save_encoder(encoder, partial / "encoder", vocab_file=vocab_file)
        facts = describe(run_dir, chosen, length=length)
        (partial / "model.json").write_text(
            json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8"
        )
        (partial / "README.md").write_text(model_card(facts), "utf-8")


def describe(run_dir: RunDir, checkpoint: Chosen, *, length: int) -> dict[str, Any]:
    """Returns the facts of model.json."""
    config = run_dir.config
    vocabulary = run_dir.vocab_file.read_bytes()
    losses = [
        line["loss"]
        for line in run_dir.read_metrics()
        if "loss" in line and line["step"] <= checkpoint.step
    ]
    return {
        "format": "labse_tf model dir",
        "encoder": {
            name: getattr(config.encoder, name) for name in config.encoder.__dataclass_fields__
        },
        "sequence_length": length,
        "max_bytes_per_word": config.tokenizer.max_bytes_per_word,
        "languages": config.languages,
        "vocabulary": {
            "tokens": len(vocabulary.splitlines()),
            "sha256": hashlib.sha256(vocabulary).hexdigest(),
        },
        "training": {
            "checkpoint": os.path.basename(checkpoint.path),
            "steps": checkpoint.step,
            "loss": losses[-1] if losses else None,
            "dev_accuracy": checkpoint.accuracy,
            "batch_size": config.train.batch_size,
            "margin": config.train.margin,
            "scale": config.train.scale,
            "seed": config.seed,
        },
        "versions": {
            "labse_tf": labse_tf.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("tensorflow", "tensorflow-text", "tf-keras")},
        },
    }
