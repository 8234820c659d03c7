"""Keeps parts of a run's encoder, and initialises the others anew: `RUN_DIR PARTS OUT`, see run.py.

PARTS is `table`, the embedding table, or `all but the last layer`, without the pooler too. With
--averaging, all attention layers start as `encoder.averaging_start` makes them. OUT is a run dir
that `labse train --init` can start from.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path

import tensorflow as tf

from labse_tf.model.encoder import build_encoder, start_averaging
from labse_tf.training.runs.checkpoints import choose_checkpoint, load_encoder
from labse_tf.training.runs.run_dir import open_existing

TABLE, ALL_BUT_LAST = "table", "all but the last layer"


def keep(run_dir: Path, parts: str, out: Path, *, averaging: bool) -> None:
    run = open_existing(run_dir)
    trained = load_encoder(run)
    encoder = build_encoder(dataclasses.replace(run.config.encoder, averaging_start=False))
    dropped = {id(variable) for variable in _dropped(encoder, parts)}
    for own, theirs in zip(encoder.variables, trained.variables, strict=True):
        if id(own) not in dropped:
            own.assign(theirs)
    if averaging:
        start_averaging(encoder)
    shutil.copytree(run_dir, out, ignore=shutil.ignore_patterns("checkpoints"))
    chosen = choose_checkpoint(run)
    folder = out / Path(chosen.path).parent.relative_to(run_dir)
    checkpoint = tf.train.Checkpoint(encoder=encoder)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=1)
    manager.save(checkpoint_number=chosen.step)


def _dropped(encoder, parts: str) -> list[tf.Variable]:
    if parts == TABLE:
        table = encoder.get_embedding_table()
        return [variable for variable in encoder.variables if variable is not table]
    return [*encoder.transformer_layers[-1].variables, *encoder.pooler_layer.variables]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    parser.add_argument("parts", choices=(TABLE, ALL_BUT_LAST), metavar="PARTS")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--averaging", action="store_true")
    args = parser.parse_args()
    keep(args.run_dir, args.parts, args.out, averaging=args.averaging)


if __name__ == "__main__":
    main()
