"""`labse eval`."""

from __future__ import annotations

import argparse
import itertools
import os
import textwrap
from collections.abc import Sequence

from labse_tf.cli.arguments import add_dim, add_overwrite
from labse_tf.errors import InputError
from labse_tf.evaluation.result import format_table, write_plot
from labse_tf.evaluation.task import (
    Task,
    describe,
    evaluate_all,
    find_task,
    find_tasks,
    task_names,
)
from labse_tf.files.outputs import check_free_file, plot_format, write_json

_ALL = "all"
_ALL_DATA = """\
a folder for each task, of its name (tatoeba, sts, senteval, pawsx, xnli, mldoc, ...):
runs these tasks, and writes a file for each into the folder --out; what is there is
run again only if its test data have changed"""
# Options without a value.
_SWITCHES = ("--overwrite", "--debug", "--help")
_WIDTH = max(map(len, task_names())) + 2

_MODEL = """MODEL is a model dir, an encoder in it (onnx/model.onnx, onnx/model_int8.onnx,
lite/encoder_int8.tflite), a sentence-transformers folder or name, or module:attribute, a Python
object with encode(list of strings). Files may be packed (.gz, .xz, .bz2, .zst)."""


def _describe(name: str, data: str) -> str:
    return f"  {name:{_WIDTH}}" + textwrap.indent(data, " " * (_WIDTH + 2)).lstrip()


EXAMPLES = f"""tasks, and what --data holds; `labse eval TASK --help` shows the options of a task:
{chr(10).join(_describe(name, find_task(name).DATA) for name in task_names())}
{_describe(_ALL, _ALL_DATA)}

TASK may also be module:attribute, your own in Python: see Task in labse_tf/evaluation/task.py.

{_MODEL}

examples:
  labse eval tatoeba model --data LASER/data/tatoeba/v1 --out tatoeba.json --plot tatoeba.png
  labse eval tatoeba sentence-transformers/LaBSE --data LASER/data/tatoeba/v1
  labse eval bucc my_encoders:ngrams --data bucc2018
  labse eval retrieval model --data demo/corpus/dev --dim 64
  labse eval all model --data testsets --out results
  labse eval my_tasks:Headlines model --data headlines --option pairs=500"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of all tasks."""
    names = ", ".join([*task_names(), _ALL, "or module:attribute"])
    parser.add_argument("task", metavar="TASK", help=names)
    parser.add_argument("model", metavar="MODEL", help="encoder: see below")
    parser.add_argument("--data", required=True, metavar="DIR", help="the test set")
    parser.add_argument(
        "--out", metavar="FILE.json", help="write all figures here; for all, a folder"
    )
    parser.add_argument("--plot", metavar="FILE.png", help="draw them (png, svg or pdf)")
    add_dim(parser)
    settings = {"metavar": "NAME=VALUE", "help": "an option of the task; repeat it for several"}
    parser.add_argument("--option", type=str, action="append", default=[], **settings)
    add_overwrite(parser)


def specialise(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Adds the options of the task that the arguments name, and describes it alone."""
    name = _find_name(argv)
    if name not in (*task_names(), _ALL):
        return
    task = None if name == _ALL else find_task(name)
    parser.epilog = (
        f"--data holds {task.DATA if task else _ALL_DATA}\n\n{_MODEL}\n\n"
        f"example:\n  labse eval {name} model --data DIR --out {name}{'.json' if task else ''}"
    )
    if task and task.OPTIONS:
        group = parser.add_argument_group(f"options of {name}")
        # Without defaults: None means not given.
        for option in task.OPTIONS:
            settings = {"help": option.help, "metavar": option.metavar, "choices": option.choices}
            if option.type:
                settings["type"] = option.type
            group.add_argument(option.flag, dest=option.name, **settings)


def _find_name(argv: Sequence[str]) -> str | None:
    """Returns the first argument that is neither an option nor the value of one."""
    for before, argument in itertools.pairwise(["", *argv]):
        takes_value = before.startswith("--") and "=" not in before
        takes_value &= not any(switch.startswith(before) for switch in _SWITCHES)
        if not argument.startswith("-") and not takes_value:
            return argument
    return None


def run(args: argparse.Namespace) -> None:
    if args.task == _ALL:
        _run_all(args)
        return
    task = find_task(args.task)
    given = _given(args, task)
    # The paths are checked before the model is loaded, which takes longest.
    if args.plot:
        plot_format(args.plot)
    for path in filter(None, (args.out, args.plot)):
        check_free_file(path, overwrite=args.overwrite)
    if not os.path.exists(args.data):
        raise InputError("no such file or folder", path=args.data, remedy="check the path")
    from labse_tf.embedding.open import open_encoder

    record = task.evaluate(open_encoder(args.model, dim=args.dim), args.data, **given)
    result = describe(task, record)
    print(format_table(result))
    if args.out:
        write_json(args.out, record, overwrite=args.overwrite)
    if args.plot:
        title = f"{record['task']}: {record['encoder']['name']}"
        write_plot(result, args.plot, title=title, overwrite=args.overwrite)


def _run_all(args: argparse.Namespace) -> None:
    from labse_tf.embedding.open import open_encoder

    for name in ("plot", "option", "overwrite"):
        if getattr(args, name):
            remedy = "leave it out, or name the task"
            raise InputError(f"--{name} is for a single task", remedy=remedy)
    if not args.out:
        raise InputError("--out is missing", remedy="name a folder for the results")
    find_tasks(args.data)
    encoder = open_encoder(args.model, dim=args.dim)
    if failures := evaluate_all(encoder, args.data, args.out, show=print):
        problem = f"{len(failures)} of the tasks failed; the first: {failures[0]}"
        raise InputError(problem, remedy="fix the data and run the same command again")


def _given(args: argparse.Namespace, task: Task) -> dict:
    """Returns the task's options that were given, also by --option."""
    options = {option.name: option for option in task.OPTIONS}
    given = {name: getattr(args, name, None) for name in options}
    for text in args.option:
        name, _, value = text.partition("=")
        option = options.get(name.replace("-", "_"))
        if option is None:
            remedy = f"it has {', '.join(options) or 'none'}"
            raise InputError(f"--option {text}: {args.task} has no such option", remedy=remedy)
        try:
            given[option.name] = option.type(value) if option.type else value
        except ValueError as error:
            raise InputError(f"--option {text}: {error}", remedy="give another value") from error
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        options[name].check(value)
    return given
