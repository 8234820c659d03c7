"""`labse eval`."""

from __future__ import annotations

import argparse
import json

from labse_tf.cli.arguments import add_overwrite

EXAMPLES = """tasks:
  retrieval   DIR/<lang>.tsv[.gz]: each sentence's translation among the file's, both directions

examples:
  labse eval retrieval model --data demo/corpus/dev
  labse eval retrieval model --data demo/corpus/dev --baseline tfidf --out retrieval.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", choices=["retrieval"])
    parser.add_argument("model_dir", metavar="MODEL_DIR")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--out", metavar="FILE.json", help="write all figures here")
    parser.add_argument(
        "--baseline", choices=["tfidf"], help="score this on the same data too (character n-grams)"
    )
    parser.add_argument(
        "--max-candidates",
        type=int,
        default=500,
        metavar="N",
        help="pairs of a language used, from the first (default 500)",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    import labse_tf
    from labse_tf.corpus_files import BITEXT, find_corpus_files
    from labse_tf.evaluation.tasks import TASKS
    from labse_tf.outputs import check_free, whole_file

    if args.out:
        check_free(args.out, overwrite=args.overwrite)
    find_corpus_files([args.data], kind=BITEXT)
    task = TASKS[args.task]
    systems = {"model": task.of_encoder(labse_tf.load(args.model_dir))}
    if args.baseline:
        systems[args.baseline] = task.BASELINES[args.baseline]
    result = task.evaluate(systems, args.data, max_candidates=args.max_candidates)
    if args.out:
        with whole_file(args.out, overwrite=args.overwrite) as partial:
            partial.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{'':8}{'pairs':>6}" + "".join(f"{name + ' xx-en':>15}{'en-xx':>8}" for name in systems))
    rows = [*result["languages"].items(), ("average", {"pairs": "", **result["average"]})]
    for name, scores in rows:
        cells = "".join(
            f"{100 * scores[system]['to_english']:15.1f}{100 * scores[system]['from_english']:8.1f}"
            for system in systems
        )
        print(f"{name:8}{scores['pairs']:>6}{cells}")
