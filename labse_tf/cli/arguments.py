"""Arguments that several commands share."""

from __future__ import annotations

import argparse


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="file, folder or glob")


def add_filter_job(parser: argparse.ArgumentParser) -> None:
    """INPUT, --out, --shard-megabytes, --overwrite."""
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--shard-megabytes",
        type=int,
        default=100,
        metavar="MB",
        help="about how much uncompressed input goes into a shard (default: %(default)s)",
    )
    add_overwrite(parser)


def strategy_options(args: argparse.Namespace) -> dict:
    """Returns what `add_run` read of the strategy, as `launch` takes it."""
    names = ("strategy", "tpu", "logical_cpus", "overwrite")
    return {name: getattr(args, name) for name in names}


def add_training(parser: argparse.ArgumentParser) -> None:
    """CONFIG and what `add_run` adds."""
    parser.add_argument("config", metavar="CONFIG", help="a YAML preset, see configs/")
    add_run(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """--run-dir, --set, the strategy, --overwrite."""
    parser.add_argument(
        "--run-dir", required=True, metavar="DIR", help="where the run is kept; resumes if there"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="change a key of the configuration; may be repeated",
    )
    parser.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="auto (default), one_device, mirrored, multi_worker (reads TF_CONFIG) or tpu",
    )
    parser.add_argument("--tpu", default="", metavar="NAME", help="the TPU's name or address")
    parser.add_argument(
        "--logical-cpus",
        type=int,
        default=0,
        metavar="N",
        help="with --strategy mirrored: N replicas on this machine's CPU",
    )
    add_overwrite(parser)
