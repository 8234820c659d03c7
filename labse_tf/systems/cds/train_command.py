"""`labse corpus train-cds`: trains the two translation models of contrastive data selection."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_run, read_config, strategy_options

EXAMPLES = """examples:
  labse corpus train-cds --config configs/cds_tiny.yaml --noisy web/bitext --trusted news/de.tsv \\
      --run-dir runs/cds
  labse corpus train-cds --noisy web/bitext --trusted news --run-dir runs/cds --vocab vocab.txt \\
      --set cds.noisy_steps=500000

--noisy and --trusted are files, folders or globs of <lang>.tsv[.gz|.xz|.bz2|.zst] or of clean
shards; several languages give one multilingual model. Trusted pairs are ones that somebody has
checked; a few thousand are enough. Without --vocab, a vocabulary is learned from both corpora and
kept as RUN_DIR.vocab.txt.

To resume an interrupted run, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("noisy", "the corpus to filter"),
        ("trusted", "the trusted corpus"),
    ):
        parser.add_argument(
            f"--{name}", nargs="+", required=True, metavar="BITEXT", help=f"{what}, or a part of it"
        )
    parser.add_argument("--config", metavar="FILE", help="a YAML preset (default: large models)")
    parser.add_argument(
        "--vocab",
        metavar="FILE",
        help="vocabulary for both sides (default: learned from both)",
    )
    add_run(parser, "labse_tf.systems.cds.config:CdsRun")


def run(args: argparse.Namespace) -> None:
    from labse_tf.config import changed
    from labse_tf.training.runs import run_dir as run_dirs

    config = read_config(args)
    given = {"cds.noisy": args.noisy, "cds.trusted": args.trusted}
    vocab_file = _vocabulary(args, config)
    config = changed(config, {**given, "tokenizer.vocab_file": vocab_file})
    config = run_dirs.resolve(config, [*args.noisy, *args.trusted])
    from labse_tf.systems.cds.train import train
    from labse_tf.training.fit import launch

    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        train(config, run_dir, strategy)


def _vocabulary(args: argparse.Namespace, config) -> str:
    """Returns the vocabulary's path: the user's, that of the run to resume, or a new one."""
    from pathlib import Path

    from beam_pipelines import build_vocab
    from labse_tf.training.runs.run_dir import RunDir

    given = args.vocab or config.tokenizer.vocab_file
    if given:
        return given
    run_dir = RunDir(Path(args.run_dir))
    if run_dir.config_file.is_file() and not args.overwrite:
        return str(run_dir.vocab_file)
    path = f"{run_dir.path}.vocab.txt"
    build_vocab.run(
        [*args.noisy, *args.trusted],
        path,
        vocab_size=config.cds.vocab_size,
        overwrite=True,
    )
    return path
