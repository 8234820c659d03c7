"""`labse eval`."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import add_overwrite

EXAMPLES = """tasks (what --data holds):
  tatoeba        LASER's tatoeba.<xxx>-eng.<xxx> and .eng: accuracy by language and over the groups
                 of 14, 36, 82 and 112 languages, both directions
  un             NAME.<a>-<b>.<a> and .<b>, or NAME.tsv: P@1 over the whole corpus, of any size,
                 en -> xx as LaBSE's paper, and both directions
  bucc           <a>-<b>.<split>.<a>, .<b> and .gold: F1 of mined pairs at the best threshold,
                 by cosine as LaBSE's paper, and by margin
  sts            <set>/<name>.tsv of score, sentence 1, sentence 2: Pearson and Spearman
  language-bias  <code>.txt, the same sentences in each: are neighbours of the same language?
  retrieval      <lang>.tsv: each sentence's translation among the file's, both directions

MODEL is a model dir, an encoder in it (onnx/model.onnx, onnx/model_int8.onnx,
lite/encoder_int8.tflite), a sentence-transformers folder or name, or module:attribute, a Python
object with encode(list of strings). Files may be packed (.gz, .xz, .bz2, .zst).

examples:
  labse eval tatoeba model --data LASER/data/tatoeba/v1 --out tatoeba.json --plot tatoeba.png
  labse eval tatoeba sentence-transformers/LaBSE --data LASER/data/tatoeba/v1
  labse eval un model --data un/testset --work vectors
  labse eval bucc my_encoders:ngrams --data bucc2018
  labse eval language-bias model --data ntrex --fit more/text --tatoeba LASER/data/tatoeba/v1
  labse eval retrieval model --data demo/corpus/dev --baseline tfidf --out retrieval.json"""

TASK_NAMES = ("tatoeba", "un", "bucc", "sts", "language-bias", "retrieval")
OPTION_NAMES = (
    "baseline",
    "max_candidates",
    "split",
    "neighbours",
    "work",
    "index",
    "recall",
    "fit",
    "tatoeba",
    "components",
    "sentences",
    "languages",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", choices=TASK_NAMES, help=", ".join(TASK_NAMES))
    parser.add_argument("model", metavar="MODEL", help="what embeds: see below")
    parser.add_argument("--data", required=True, metavar="DIR", help="the test set")
    parser.add_argument("--out", metavar="FILE.json", help="write all figures here")
    parser.add_argument(
        "--plot", metavar="FILE.png", help="draw them (png, svg or pdf); not of retrieval"
    )
    _add_task_options(parser)
    add_overwrite(parser)


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    """Without defaults, which are the tasks' own: what is None was not given."""
    un = parser.add_argument_group("options of un")
    un.add_argument(
        "--work",
        metavar="DIR",
        help="keep the vectors here: what was stopped goes on, and those of the same texts and "
        "model are used again (default: a temporary folder)",
    )
    un.add_argument(
        "--index",
        choices=["exact", "approximate", "auto"],
        help="how neighbours are searched (default exact; auto is exact for small pools)",
    )
    un.add_argument(
        "--recall",
        type=float,
        metavar="X",
        help="the share of true neighbours that an approximate search is to find (default 0.99)",
    )
    bucc = parser.add_argument_group("options of bucc")
    bucc.add_argument(
        "--neighbours",
        type=int,
        metavar="K",
        help="that the means of the margin scores are taken over (default 4)",
    )
    sts = parser.add_argument_group("options of sts")
    sts.add_argument(
        "--split",
        choices=["train", "dev", "test"],
        help="of files whose names tell a split (default test)",
    )
    _add_bias_options(parser.add_argument_group("options of language-bias"))
    retrieval = parser.add_argument_group("options of retrieval")
    retrieval.add_argument(
        "--baseline", choices=["tfidf"], help="score this on the same data too (character n-grams)"
    )
    retrieval.add_argument(
        "--max-candidates",
        type=int,
        metavar="N",
        help="pairs of a language used, from the first (default 500)",
    )


def _add_bias_options(group) -> None:
    group.add_argument(
        "--fit",
        metavar="DIR",
        help="other text, <code>.txt, to find the principal components of (default: the pool)",
    )
    group.add_argument(
        "--tatoeba", metavar="DIR", help="also measure what their removal does to Tatoeba"
    )
    group.add_argument(
        "--components",
        type=numbers,
        metavar="N,...",
        help="how many are taken out (default 0,1,2,4,8)",
    )
    group.add_argument(
        "--sentences", type=int, metavar="N", help="of each language, from the first (default 200)"
    )
    group.add_argument(
        "--languages", type=_names, metavar="CODES", help="such as deu,eng,tha (default: all)"
    )


def numbers(text: str) -> list[int]:
    """Its name is in argparse's message."""
    return [int(number) for number in text.split(",")]


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def run(args: argparse.Namespace) -> None:
    from labse_tf.evaluation.tasks import TASKS

    task = TASKS[args.task]
    given = {name: getattr(args, name) for name in OPTION_NAMES}
    given = {name: value for name, value in given.items() if value is not None}
    _check(args, task, given)
    from labse_tf.embedding.open import open_encoder

    result = task.evaluate(open_encoder(args.model), args.data, **given)
    print(task.format_table(result))
    from labse_tf.evaluation.report import write_plot
    from labse_tf.files.outputs import write_json

    if args.out:
        write_json(args.out, result, overwrite=args.overwrite)
    if args.plot:
        write_plot(task.draw, result, args.plot, overwrite=args.overwrite)


def _check(args: argparse.Namespace, task, given: dict) -> None:
    """Before the model is loaded, which takes longest."""
    import os

    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free_file
    from labse_tf.files.plot_formats import plot_format

    for name in given:
        if name not in task.OPTIONS:
            raise InputError(
                f"--{name.replace('_', '-')} is no option of {args.task}",
                remedy="leave it out, see `labse eval --help`",
            )
    if args.plot:
        plot_format(args.plot)
        if not hasattr(task, "draw"):
            raise InputError(f"{args.task} has no plot", remedy="leave --plot out")
    for path in (args.out, args.plot):
        if path:
            check_free_file(path, overwrite=args.overwrite)
    if not os.path.exists(args.data):
        raise InputError("no such file or folder", path=args.data, remedy="check the path")
