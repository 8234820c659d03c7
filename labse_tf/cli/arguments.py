"""The arguments of commands: a table of options, the options that commands share, and paths.

An argument of no other type may be a path, on this machine or in a store.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files import staging
from labse_tf.files.local_paths import STORE_SCHEMES, TENSORFLOW_SCHEMES, local_path, scheme_of
from labse_tf.files.outputs import check_apart, is_within

OUTPUTS = ("out", "plot", "report", "run_dir")
_TYPES = {
    **dict.fromkeys(("N", "MB", "TOKENS"), int),
    **dict.fromkeys(("X", "P"), float),
    **dict.fromkeys(("NAME", "TEXT", "CODE", "CODES"), str),
}
# Keys of the configuration that hold a path, and lists that hold none; others may.
_PATHS, _NO_PATHS = (".vocab_file", ".teacher"), ("languages", ".targets")


def add_options(parser: argparse.ArgumentParser, *tables: str) -> None:
    """Adds the arguments in the tables to the parser, in their order.

    An entry is `--name METAVAR: help`, or `name METAVAR: help` for an argument without a flag; its
    further lines are indented. In place of METAVAR:

      METAVAR=VALUE  the default, which the help shows
      METAVAR!       the option is required
      METAVAR...     one or more values
      {a,b}          a choice
      A B            two values
      nothing        a switch; `--[no-]name` has both forms

    Options N, MB and TOKENS are integers, X and P floats, and NAME, TEXT, CODE and CODES texts; all
    other values may be paths.
    """
    for table in tables:
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(table).strip()):
            head, _, help_ = " ".join(entry.split()).partition(": ")
            _add_option(parser, head.split(), help_)


def _add_option(parser: argparse.ArgumentParser, words: list[str], help_: str) -> None:
    flags = [word.rstrip(",").replace("[no-]", "") for word in words if word.startswith("-")]
    metavars = words[len(flags) or 1 :]
    settings: dict[str, Any] = {}
    if not metavars:
        both = "[no-]" in words[-1]
        settings["action"] = argparse.BooleanOptionalAction if both else "store_true"
    elif len(metavars) > 1:
        settings = {"nargs": len(metavars), "metavar": tuple(metavars)}
    else:
        text, has_default, default = metavars[0].partition("=")
        metavar = text.rstrip("!.")
        type_ = _TYPES.get(metavar) if flags else None
        if metavar.startswith("{"):
            settings["choices"] = metavar.strip("{}").split(",")
        else:
            settings |= {"metavar": metavar, "type": type_}
        if text.endswith("!"):
            settings["required"] = True
        if "..." in text:
            settings["nargs"] = "+"
            if flags and "!" not in text:
                settings["default"] = []
        if has_default:
            settings["default"] = (type_ or str)(default)
            if default and "default" not in help_:
                help_ += " (default: %(default)s)"
    parser.add_argument(*(flags or words[:1]), **settings, help=help_ or None)


def command(*arguments: str | Callable[[argparse.ArgumentParser], None]) -> Callable:
    """Makes a command of a function, whose docstring is the text below its help.

    `arguments` are tables of `add_options`, or functions of the parser that add arguments.
    """

    def make(run: Callable[[argparse.Namespace], int | None]) -> SimpleNamespace:
        def add_arguments(parser: argparse.ArgumentParser) -> None:
            for one in arguments:
                add_options(parser, one) if isinstance(one, str) else one(parser)

        examples = inspect.cleandoc(run.__doc__ or "")
        return SimpleNamespace(EXAMPLES=examples, add_arguments=add_arguments, run=run)

    return make


# Options that commands share.

INPUTS = "inputs INPUT...: files, folders or globs"
OVERWRITE = "--overwrite: replace the output if it exists"
CONFIG = "config CONFIG: a YAML preset, see configs/"
NORMALIZE = """
--normalize {NFC,NFKC,NFD,NFKD}: bring texts to this form of Unicode first; NFC makes one of a
  letter and its marks, as most text has them (default: leave texts as they are, as LaBSE does)
"""
DIM = """
--dim N: keep the first N columns of the vectors, scaled to unit length again; for models trained
  with train.matryoshka (default: all)
"""
CHECKPOINT = """
{option} {{best,latest}}: checkpoint of that run: the best on its dev pairs, or the newest (default:
  the best, if the run has one)
"""


def add_init(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        --init DIR: start from the weights of this run, this model dir (the --out of `labse
          export`), or this Hugging Face BERT (a folder with config.json, vocab.txt and
          model.safetensors); init.tsv lists the weights that were copied
        """,
        CHECKPOINT.format(option="--init-checkpoint"),
    )


def add_model_dir_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every export: --out, --format, --length, --no-verify, --overwrite."""
    add_options(parser, "--out MODEL_DIR!: the model dir to write")
    parser.add_argument(
        "--format",
        default="hub,text",
        dest="formats",
        metavar="FORMATS",
        help="comma-separated: hub: SavedModels with the TF-Hub interface; text: a SavedModel from "
        "strings to unit vectors, with a second copy of the weights; hf: for "
        "transformers.BertModel and SentenceTransformer(MODEL_DIR); lite: LiteRT, int8; onnx: "
        "float32 and int8 (default: %(default)s)",
    )
    add_options(
        parser,
        """
        --table TYPE=float32: type of the embedding table in the SavedModels: float32 (default),
          float16 or int8; the last two cannot be trained
        --length TOKENS: static length of the preprocessor's output (default 128, or
          encoder.max_positions if that is smaller)
        --licence TEXT: licence of the model, for the model card
        --results FILE.json...: of `labse eval`, for the card
        --no-verify: skip `labse verify`
        """,
        OVERWRITE,
    )


def parse_languages(codes: str | None) -> list[str]:
    """Returns the languages of an option such as `--languages en,de`."""
    from labse_tf.languages import require_code

    return [require_code(code.strip()) for code in (codes or "").split(",") if code.strip()]


def add_overrides(parser: argparse.ArgumentParser) -> None:
    names = {"dest": "overrides", "metavar": "KEY=VALUE"}
    help_ = "override a configuration key; may be repeated"
    parser.add_argument("--set", type=str, action="append", default=[], **names, help=help_)


def read_config(args: argparse.Namespace, overrides: Sequence[str] = ()):
    """Returns the configuration of --set and CONFIG; `overrides` are further ones."""
    from labse_tf.config import check_warmup, load_config

    module, _, name = args.config_kind.partition(":")
    kind = getattr(importlib.import_module(module), name)
    config = load_config(args.config, [*getattr(args, "overrides", ()), *overrides], kind)
    check_warmup(config, path=args.config)
    return config


def add_training(parser: argparse.ArgumentParser, kind: str) -> None:
    add_options(parser, CONFIG)
    add_run(parser, kind)


def add_run(parser: argparse.ArgumentParser, kind: str, *, required: bool = True) -> None:
    """Adds --run-dir, --set, the strategy options and --overwrite.

    `kind` is the class of the command's configuration, as `module:attribute`.
    """
    parser.set_defaults(config_kind=kind)
    needed = "!" if required else ""
    add_options(parser, f"--run-dir DIR{needed}: folder of the run; an existing run is resumed")
    add_overrides(parser)
    add_options(
        parser,
        """
        --strategy NAME=auto: auto (default), one_device, mirrored, multi_worker (reads TF_CONFIG)
          or tpu; auto: tpu with --tpu or on a TPU VM, multi_worker with TF_CONFIG, mirrored with
          several GPUs
        --tpu NAME=: name or address of the TPU; not needed on a TPU VM
        --logical-cpus N=0: with --strategy mirrored: N replicas on this machine's CPU
        """,
        OVERWRITE,
    )


def strategy_options(args: argparse.Namespace) -> dict:
    """Returns the arguments of `add_run` that are options of `launch`."""
    names = ("strategy", "tpu", "logical_cpus", "overwrite")
    return {name: getattr(args, name) for name in names}


# Paths.


class StoreUrl(str):
    """An argument that names a file or folder in a store, until `stage` replaces it."""

    __slots__ = ()


def path_argument(text: str) -> str:
    """Converts an argument that has no `type` of its own: see `local_path`."""
    if scheme_of(text) in TENSORFLOW_SCHEMES:
        return StoreUrl(text)
    try:
        return local_path(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def store_argument(text: str) -> str:
    """Same as `path_argument` for Beam jobs, whose paths may be in a store."""
    if text.lower().startswith(tuple(f"{scheme}://" for scheme in STORE_SCHEMES)):
        return text
    return path_argument(text)


def check_outputs(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Raises InputError if an output would replace an input or another output."""
    names = [one.dest for one in parser._actions if not (one.type or one.choices)]
    given = [
        (name, one)
        for name in names
        for one in _list(getattr(args, name, None))
        if isinstance(one, str) and one != "-" and name != "task"
    ]
    outputs = {name: one for name, one in given if name in (*OUTPUTS, "counts", "work")}
    inputs = [one for name, one in given if name not in outputs]
    if outputs and hasattr(args, "config_kind"):
        inputs += _paths_in_config(args)
    for name, output in outputs.items():
        replaced = name in OUTPUTS and getattr(args, "overwrite", False)
        check_apart(output, inputs, overwrite=replaced)
        if name != "out" and "out" in outputs and is_within(output, outputs["out"]):
            raise InputError("is the same file as --out, or in it", path=output, remedy="move it")


def _paths_in_config(args: argparse.Namespace) -> list[str]:
    from labse_tf.config import flatten

    try:
        config = read_config(args)
    except InputError:
        return []  # The command says what is wrong.
    found = []
    for key, value in flatten(dataclasses.asdict(config)):
        if key.endswith(_PATHS) or isinstance(value, list) and not key.endswith(_NO_PATHS):
            found += map(str, _list(value))
    # Some are written NAME=PATH.
    return [path for one in found for path in (one, one.partition("=")[2]) if path]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def stage(args: argparse.Namespace) -> None:
    """Replaces URLs of stores by paths: of copies of inputs, and of outputs to be published."""
    fetch, overwrite = staging.input_path, getattr(args, "overwrite", False)
    for name, value in vars(args).items():
        if isinstance(value, list):
            value = [fetch(one) if isinstance(one, StoreUrl) else one for one in value]
        elif isinstance(value, StoreUrl) and name in OUTPUTS:
            value = staging.output_path(value, overwrite=overwrite)
        elif isinstance(value, StoreUrl):
            value = fetch(value)
        setattr(args, name, value)
