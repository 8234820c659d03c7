"""Contrastive data selection: how much tuning a translator on trusted pairs raises a pair's score.

Wang et al. 2018, "Denoising Neural Machine Translation Training with Trusted Data and Online Data
Selection", the filter that the LaBSE paper names (section 3.1). The package is the command
`labse corpus train-cds`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from labse_tf.cli.arguments import add_options, add_run, read_config, strategy_options
from labse_tf.registry import Command

COMMANDS = {
    ("corpus", "train-cds"): Command(
        __name__, "train the translation models of contrastive data selection"
    ),
    ("corpus", "score-cds"): Command(
        f"{__name__}.score_command", "score pairs for contrastive data selection", is_beam_job=True
    ),
    ("corpus", "calibrate"): Command(
        f"{__name__}.calibration", "choose a score threshold from pairs labelled GOOD or BAD"
    ),
}
FILTERS = {"contrastive": f"{__name__}.filter:Cds"}
TRANSLATORS = dict.fromkeys(("trusted", "noisy"), f"{__name__}.scorer:TransformerTranslator")
SECTIONS = {"cds": f"{__name__}.config"}

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
    add_options(
        parser,
        """
        --noisy BITEXT...!: the corpus to filter, or a part of it
        --trusted BITEXT...!: the trusted corpus, or a part of it
        --config FILE: a YAML preset (default: large models)
        --vocab FILE: vocabulary for both sides (default: learned from both)
        """,
    )
    add_run(parser, "labse_tf.systems.cds.config:CdsRun")


def run(args: argparse.Namespace) -> None:
    from labse_tf.config import changed
    from labse_tf.training.runs.run_dir import resolve

    config = read_config(args)
    given = {"cds.noisy": args.noisy, "cds.trusted": args.trusted}
    given["tokenizer.vocab_file"] = _find_vocabulary(args, config)
    config = resolve(changed(config, given), [*args.noisy, *args.trusted])
    from labse_tf.systems.cds.train import train
    from labse_tf.training.fit import launch

    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        train(config, run_dir, strategy)


def _find_vocabulary(args: argparse.Namespace, config) -> str:
    """Returns the path of the given vocabulary, the resumed run's, or a new one."""
    from beam_pipelines import build_vocab
    from labse_tf.training.runs.run_dir import RunDir

    if given := args.vocab or config.tokenizer.vocab_file:
        return given
    run_dir = RunDir(Path(args.run_dir))
    if run_dir.config_file.is_file() and not args.overwrite:
        return str(run_dir.vocab_file)
    path, size = f"{run_dir.path}.vocab.txt", config.cds.vocab_size
    build_vocab.run([*args.noisy, *args.trusted], path, vocab_size=size, overwrite=True)
    return path
