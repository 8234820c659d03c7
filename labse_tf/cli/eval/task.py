"""`labse eval`."""

from __future__ import annotations

import argparse
import textwrap

from labse_tf.cli.arguments import add_dim, add_overwrite
from labse_tf.evaluation.task import Option, find_task, task_names

_TASKS = {name: find_task(name) for name in task_names()}
_WIDTH = max(map(len, _TASKS)) + 2
_ALL = "all"


def _describe(name: str, data: str) -> str:
    lines = textwrap.indent(data, " " * (_WIDTH + 2)).lstrip()
    return f"  {name:{_WIDTH}}{lines}"


EXAMPLES = f"""tasks (what --data holds):
{chr(10).join(_describe(name, task.DATA) for name, task in _TASKS.items())}

TASK all runs every task with data in a folder of its name in --data (tatoeba, sts, senteval, pawsx,
xnli, mldoc, flores, ...), and writes a file for each into the folder --out; what is there is run
again only if its test data have changed. TASK may also be module:attribute, your own in Python: see
Task in labse_tf/evaluation/task.py.

MODEL is a model dir, an encoder in it (onnx/model.onnx, onnx/model_int8.onnx,
lite/encoder_int8.tflite), a sentence-transformers folder or name, or module:attribute, a Python
object with encode(list of strings). Files may be packed (.gz, .xz, .bz2, .zst).

examples:
  labse eval tatoeba model --data LASER/data/tatoeba/v1 --out tatoeba.json --plot tatoeba.png
  labse eval tatoeba sentence-transformers/LaBSE --data LASER/data/tatoeba/v1
  labse eval un model --data un/testset --work vectors
  labse eval bucc my_encoders:ngrams --data bucc2018
  labse eval language-bias model --data ntrex --fit more/text --tatoeba LASER/data/tatoeba/v1
  labse eval retrieval model --data demo/corpus/dev --baseline tfidf --out retrieval.json
  labse eval retrieval model --data demo/corpus/dev --dim 64
  labse eval all model --data testsets --out results
  labse eval my_tasks:Headlines model --data headlines --option pairs=500"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join([*_TASKS, _ALL, "or module:attribute"])
    parser.add_argument("task", metavar="TASK", help=names)
    parser.add_argument("model", metavar="MODEL", help="what embeds: see below")
    parser.add_argument("--data", required=True, metavar="DIR", help="the test set")
    parser.add_argument(
        "--out", metavar="FILE.json", help="write all figures here; of all, a folder"
    )
    parser.add_argument(
        "--plot", metavar="FILE.png", help="draw them (png, svg or pdf); not of retrieval"
    )
    add_dim(parser)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of your own task; repeat it for several",
    )
    _add_task_options(parser)
    add_overwrite(parser)


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    """Adds the tasks' options without their defaults, so that None means not given."""
    options: dict[str, dict[str, Option]] = {}
    for name, task in _TASKS.items():
        for option in task.OPTIONS:
            options.setdefault(option.name, {})[name] = option
    groups: dict[str, argparse._ArgumentGroup] = {}
    for of_tasks in options.values():
        title = f"options of {', '.join(of_tasks)}"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        one = next(iter(of_tasks.values()))
        text = one.help
        if len({option.help for option in of_tasks.values()}) > 1:
            text = "; ".join(f"{name}: {option.help}" for name, option in of_tasks.items())
        settings = {"help": text, "metavar": one.metavar, "choices": one.choices}
        if one.type:
            settings["type"] = one.type
        groups[title].add_argument(one.flag, dest=one.name, **settings)


def run(args: argparse.Namespace) -> None:
    if args.task == _ALL:
        _run_all(args)
        return
    task = find_task(args.task)
    given = _given(args, task)
    _check(args, task)
    from labse_tf.embedding.open import open_encoder

    result = task.evaluate(open_encoder(args.model, dim=args.dim), args.data, **given)
    print(task.format_table(result))
    from labse_tf.evaluation.report import write_plot
    from labse_tf.files.outputs import write_json

    if args.out:
        write_json(args.out, result, overwrite=args.overwrite)
    if args.plot:
        write_plot(task.draw, result, args.plot, overwrite=args.overwrite)


def _run_all(args: argparse.Namespace) -> None:
    from labse_tf.embedding.open import open_encoder
    from labse_tf.errors import InputError
    from labse_tf.evaluation.suite import evaluate_all, find_tasks

    names = {option.name for task in _TASKS.values() for option in task.OPTIONS}
    given = [name for name in ("plot", *sorted(names)) if getattr(args, name) is not None]
    if given or args.option or args.overwrite:
        flag = f"--{given[0].replace('_', '-')}" if given else "--option, --overwrite"
        raise InputError(f"{flag} is for a single task", remedy="leave it out, or name the task")
    if not args.out:
        raise InputError("--out is missing", remedy="name a folder for the results")
    find_tasks(args.data)
    encoder = open_encoder(args.model, dim=args.dim)
    if failures := evaluate_all(encoder, args.data, args.out, show=print):
        raise InputError(
            f"{len(failures)} of the tasks failed; the first: {failures[0]}",
            remedy="mend their data and run the same command again",
        )


def _given(args: argparse.Namespace, task) -> dict:
    """Returns the options of the task that were given; rejects those of other tasks."""
    from labse_tf.errors import InputError

    options = {option.name: option for option in task.OPTIONS}
    given = {}
    for known in (option for one in _TASKS.values() for option in one.OPTIONS):
        value = getattr(args, known.name)
        if value is not None and known.name not in options:
            raise InputError(
                f"{known.flag} is not an option of {args.task}",
                remedy="leave it out, see `labse eval --help`",
            )
        if value is not None:
            given[known.name] = value
    for text in args.option:
        name, _, value = text.partition("=")
        option = options.get(name.replace("-", "_"))
        if option is None:
            raise InputError(
                f"--option {text}: {args.task} has no such option",
                remedy=f"it has {', '.join(options) or 'none'}",
            )
        try:
            given[option.name] = option.type(value) if option.type else value
        except ValueError as error:
            raise InputError(f"--option {text}: {error}", remedy="give another value") from error
    return given


def _check(args: argparse.Namespace, task) -> None:
    """Checks the arguments before the model is loaded, which takes longest."""
    import os

    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free_file
    from labse_tf.files.plot_formats import plot_format

    if args.plot:
        plot_format(args.plot)
        if not hasattr(task, "draw"):
            raise InputError(f"{args.task} has no plot", remedy="leave --plot out")
    for path in (args.out, args.plot):
        if path:
            check_free_file(path, overwrite=args.overwrite)
    if not os.path.exists(args.data):
        raise InputError("no such file or folder", path=args.data, remedy="check the path")
