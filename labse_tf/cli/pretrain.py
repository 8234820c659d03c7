"""`labse pretrain`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_init, add_training, strategy_options

EXAMPLES = """examples:
  labse pretrain configs/tiny.yaml --run-dir runs/pretrain \\
      --set tokenizer.vocab_file=vocab.txt \\
      --set pretrain.monolingual=[clean/monolingual] --set pretrain.bitext=[clean/bitext]
  labse pretrain configs/labse_mbert_vocab.yaml --run-dir runs/more \\
      --init bert-base-multilingual-cased --set encoder.activation=gelu \\
      --set pretrain.stage_steps=[100000] \\
      --set pretrain.monolingual=[clean/monolingual] --set pretrain.bitext=[clean/bitext]

To resume an interrupted run, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_training(parser)
    add_init(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.config.check import check_warmup
    from labse_tf.config.files import load_config
    from labse_tf.training.runs import run_dir as run_dirs

    config = load_config(args.config, args.overrides)
    check_warmup(config, "pretrain", path=args.config)
    from labse_tf.training.launch import launch
    from labse_tf.training.pretrain import first_depth, pretrain
    from labse_tf.training.runs.initial_weights import open_origin

    init = open_origin(args.init, args.init_checkpoint) if args.init else None
    corpora = [*config.pretrain.monolingual, *config.pretrain.bitext]
    config = run_dirs.resolve(config, corpora, init=init, first_depth=first_depth(config))

    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        pretrain(config, run_dir, strategy, init=init)
