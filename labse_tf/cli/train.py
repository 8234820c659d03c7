"""`labse train`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_init, add_training, read_config, strategy_options

EXAMPLES = """examples:
  labse train configs/tiny_table.yaml --run-dir runs/table \\
      --set tokenizer.vocab_file=vocab.txt --set train.bitext=[clean/bitext]
  labse train configs/tiny.yaml --run-dir runs/dual --init runs/table \\
      --set train.bitext=[clean/bitext]
  labse train configs/tiny.yaml --run-dir runs/best --init runs/table \\
      --set train.bitext=[clean/bitext] --set train.dev=[dev] --set train.patience=5
  labse train configs/labse_mbert_vocab.yaml --run-dir runs/mbert \\
      --init bert-base-multilingual-cased --set encoder.activation=gelu \\
      --set train.bitext=[clean/bitext]
  labse train configs/tiny.yaml --run-dir runs/joint --init runs/cmlm --set train.joint=true \\
      --set encoder.pooling=mean --set pretrain.objective=cmlm \\
      --set pretrain.neighbours=[documents] --set train.bitext=[clean/bitext]
  labse train configs/tiny.yaml --run-dir runs/two --strategy mirrored --logical-cpus 2 \\
      --set tokenizer.vocab_file=vocab.txt --set train.bitext=[clean/bitext]

To resume an interrupted run, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "labse_tf.config:TrainRun")
    add_init(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.training.runs import run_dir as run_dirs

    config = read_config(args)
    from labse_tf.training.runs.initial_weights import open_origin

    init = open_origin(args.init, args.init_checkpoint) if args.init else None
    train_on = [*config.train.bitext, *config.train.replay]
    corpora = [*train_on, *(config.pretrain.corpora if config.train.joint else [])]
    config = run_dirs.resolve(config, corpora, init=init)
    from labse_tf.training.dual_encoder import train
    from labse_tf.training.fit import launch

    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        train(config, run_dir, strategy, init=init)
