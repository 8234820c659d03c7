"""`labse pretrain`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import (
    add_init,
    add_options,
    add_training,
    read_config,
    strategy_options,
)

EXAMPLES = """examples:
  labse pretrain configs/tiny.yaml --run-dir runs/pretrain \\
      --set tokenizer.vocab_file=vocab.txt \\
      --set pretrain.monolingual=[clean/monolingual] --set pretrain.bitext=[clean/bitext]
  labse pretrain configs/labse_mbert_vocab.yaml --run-dir runs/more \\
      --init bert-base-multilingual-cased --set encoder.activation=gelu \\
      --set pretrain.stage_steps=[100000] \\
      --set pretrain.monolingual=[clean/monolingual] --set pretrain.bitext=[clean/bitext]
  labse pretrain configs/tiny.yaml --objective cmlm --run-dir runs/cmlm \\
      --set tokenizer.vocab_file=vocab.txt --set encoder.pooling=mean \\
      --set pretrain.neighbours=[clean/neighbours]

To resume an interrupted run, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "labse_tf.config:PretrainRun")
    add_init(parser)
    add_options(
        parser,
        """
        --objective {mlm,cmlm}: MLM and TLM, or conditional masked language modelling on
          neighbouring sentences; the same as --set pretrain.objective=... (default: the
          configuration's)
        """,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.training.runs import run_dir as run_dirs

    objective = [f"pretrain.objective={args.objective}"] if args.objective else []
    config = read_config(args, objective)
    # A wrong configuration is refused before TensorFlow is imported, which takes seconds.
    from labse_tf.training.fit import launch
    from labse_tf.training.pretrain import first_depth, pretrain
    from labse_tf.training.runs.initial_weights import open_origin

    init = open_origin(args.init, args.init_checkpoint) if args.init else None
    depth = first_depth(config)
    config = run_dirs.resolve(config, config.pretrain.corpora, init=init, first_depth=depth)
    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        pretrain(config, run_dir, strategy, init=init)
