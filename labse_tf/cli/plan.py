"""`labse plan`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import CONFIG, add_options, add_overrides

EXAMPLES = """examples:
  labse plan configs/labse_base.yaml --device tpu-v3 --replicas 512 --only pretrain
  labse plan configs/labse_base.yaml --device tpu-v3 --replicas 32 --only train --price 1.1
  labse plan configs/labse_base.yaml --device h100 --replicas 8 --set train.chunk_size=64
  labse plan configs/small.yaml --set encoder.vocab_size=60000
  labse plan configs/small.yaml --set tokenizer.vocab_file=vocab.txt --json plan.json

Nothing is trained: memory and operations follow from the sizes, for sequences of full length;
batches of shorter texts take less. Times assume that the device reaches a share of its peak, and
leave out what replicas exchange. docs/scaling.md tells what is counted and how near it comes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from labse_tf.config.devices import CPU, NAMES
    from labse_tf.config.plan import SECTIONS

    add_options(parser, CONFIG)
    parser.set_defaults(config_kind="labse_tf.config:TrainRun")
    parser.add_argument(
        "--device",
        choices=NAMES,
        default=CPU,
        metavar="NAME",
        help=f"what each replica has: {', '.join(NAMES)}; a core of a TPU v2 or v3, a chip of a "
        "later one; cpu is this machine (default: %(default)s)",
    )
    add_options(
        parser,
        f"""
        --replicas N=1: devices
        --only {{{",".join(SECTIONS)}}}: plan one command (default: pretrain and train)
        --efficiency X: share of the device's peak that is reached (default: 0.4; 0.8 for cpu, whose
          peak is measured)
        --price P: of a device for an hour, in any currency
        """,
    )
    add_overrides(parser)
    add_options(parser, "--json FILE: write the plan here too")


def run(args: argparse.Namespace) -> None:
    from labse_tf.config import changed, load_config
    from labse_tf.config.devices import find_device
    from labse_tf.config.plan import SECTIONS, format_plan, make_plan
    from labse_tf.errors import InputError
    from labse_tf.files.outputs import write_json
    from vocab import wordpiece_file

    config = load_config(args.config, args.overrides)
    if not config.encoder.vocab_size:
        if not config.tokenizer.vocab_file:
            raise InputError(
                "'encoder.vocab_size' is 0, and 'tokenizer.vocab_file' is empty",
                path=args.config,
                remedy="add --set encoder.vocab_size=N or --set tokenizer.vocab_file=vocab.txt",
            )
        size = len(wordpiece_file.read(config.tokenizer.vocab_file))
        config = changed(config, {"encoder.vocab_size": size})
    plan = make_plan(
        config,
        find_device(args.device),
        replicas=args.replicas,
        efficiency=args.efficiency,
        price=args.price,
        sections=[args.only] if args.only else SECTIONS,
    )
    print(format_plan(plan))
    if args.json:
        write_json(args.json, plan.facts(), overwrite=True)
