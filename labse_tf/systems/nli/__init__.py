"""`labse train-nli`: natural language inference, as in section 4.3 of CMLM's paper."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_init, add_training, read_config, strategy_options
from labse_tf.registry import Command

COMMANDS = {("train-nli",): Command(__name__, "fine-tune an encoder on natural language inference")}
SECTIONS = {"nli": "labse_tf.systems.nli.config"}

EXAMPLES = """examples:
  labse train-nli configs/nli.yaml --init runs/dual --run-dir runs/nli \\
      --set 'nli.corpora=[xnli/train.*]' --set 'nli.dev=[xnli/dev.*]'
  labse train-nli configs/nli.yaml --init model --run-dir runs/classifier \\
      --set nli.corpora=[snli] --set nli.train_encoder=false
  labse export runs/nli --out model_nli

Trains on pairs of a premise and a hypothesis, labelled as entailment, neutral or contradiction (any
labels will do), in files <lang>.tsv or NAME.<lang>.tsv of premise, hypothesis and label. The files
of an entry have the same pairs on the same lines, one file a language: each time that a pair is
drawn, its sides are in two different languages. What is exported is the encoder.

To resume an interrupted run, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "labse_tf.systems.nli.config:NliRun")
    add_init(parser)


def run(args: argparse.Namespace) -> None:
    config = read_config(args)
    if not args.init:
        from labse_tf.errors import InputError

        raise InputError(
            "there is no encoder to fine-tune", remedy="add --init RUN_DIR or --init MODEL_DIR"
        )
    from labse_tf.systems.nli.train import train_inference
    from labse_tf.training.fit import launch
    from labse_tf.training.runs.initial_weights import open_origin
    from labse_tf.training.runs.run_dir import resolve

    init = open_origin(args.init, args.init_checkpoint)
    config = resolve(config, init=init)

    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        train_inference(config, run_dir, strategy, init=init)
