"""`labse pretrain`, `labse train`, `labse plan`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import (
    CONFIG,
    add_init,
    add_overrides,
    add_training,
    command,
    read_config,
    strategy_options,
)
from labse_tf.errors import InputError


@command(
    lambda parser: add_training(parser, "labse_tf.config:PretrainRun"),
    add_init,
    """
    --objective {mlm,cmlm}: MLM and TLM, or conditional masked language modelling on
      neighbouring sentences; the same as --set pretrain.objective=... (default: the
      configuration's)
    """,
)
def labse_pretrain(args: argparse.Namespace) -> None:
    """examples:
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


@command(lambda parser: add_training(parser, "labse_tf.config:TrainRun"), add_init)
def labse_train(args: argparse.Namespace) -> None:
    """examples:
      labse train configs/tiny_table.yaml --run-dir runs/table \\
          --set tokenizer.vocab_file=vocab.txt --set train.bitext=[clean/bitext]
      labse train configs/tiny.yaml --run-dir runs/dual --init runs/table \\
          --set train.bitext=[clean/bitext]
      labse train configs/tiny.yaml --run-dir runs/best --init runs/table \\
          --set train.bitext=[clean/bitext] --set train.dev=[dev] --set train.patience=5
      labse train configs/tiny.yaml --run-dir runs/joint --init runs/cmlm --set train.joint=true \\
          --set encoder.pooling=mean --set pretrain.objective=cmlm \\
          --set pretrain.neighbours=[documents] --set train.bitext=[clean/bitext]
      labse train configs/tiny.yaml --run-dir runs/two --strategy mirrored --logical-cpus 2 \\
          --set tokenizer.vocab_file=vocab.txt --set train.bitext=[clean/bitext]

    To resume an interrupted run, run the same command again."""
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


def _add_device(parser: argparse.ArgumentParser) -> None:
    from labse_tf.config.devices import CPU, NAMES

    parser.set_defaults(config_kind="labse_tf.config:TrainRun")
    help_ = f"what each replica has: {', '.join(NAMES)}; a core of a TPU v2 or v3, a chip of a "
    help_ += "later one; cpu is this machine (default: %(default)s)"
    parser.add_argument("--device", choices=NAMES, default=CPU, metavar="NAME", help=help_)


@command(
    CONFIG,
    _add_device,
    """
    --replicas N=1: devices
    --only {pretrain,train}: plan one command (default: pretrain and train)
    """,
    add_overrides,
)
def labse_plan(args: argparse.Namespace) -> None:
    """examples:
      labse plan configs/labse_base.yaml --device tpu-v3 --replicas 512 --only pretrain
      labse plan configs/labse_base.yaml --device tpu-v3 --replicas 32 --only train
      labse plan configs/small.yaml --set encoder.vocab_size=60000
      labse plan configs/small.yaml --set tokenizer.vocab_file=vocab.txt

    Nothing is trained: memory and operations follow from the sizes, for sequences of full length;
    batches of shorter texts take less. Times assume that the device reaches 0.4 of its peak (a cpu
    0.8 of the measured one), and leave out what replicas exchange. docs/scaling.md tells what is
    counted and how near it comes."""
    from labse_tf.config import changed, load_config
    from labse_tf.config.devices import find_device
    from labse_tf.config.plan import SECTIONS, format_plan, make_plan
    from vocab import wordpiece_file

    config = load_config(args.config, args.overrides)
    if not config.encoder.vocab_size:
        if not config.tokenizer.vocab_file:
            problem = "'encoder.vocab_size' is 0, and 'tokenizer.vocab_file' is empty"
            remedy = "add --set encoder.vocab_size=N or --set tokenizer.vocab_file=vocab.txt"
            raise InputError(problem, path=args.config, remedy=remedy)
        size = len(wordpiece_file.read(config.tokenizer.vocab_file))
        config = changed(config, {"encoder.vocab_size": size})
    sections = [args.only] if args.only else SECTIONS
    device = find_device(args.device)
    print(format_plan(make_plan(config, device, replicas=args.replicas, sections=sections)))
