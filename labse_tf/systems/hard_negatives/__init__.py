"""`labse mine-negatives`: hard negatives, close in meaning to a source that they do not translate.

LaBSE, appendix B; Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence
Embeddings", section 3: a weaker dual encoder, a deep averaging network, finds them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from labse_tf.cli.arguments import add_inputs, add_run, read_config, strategy_options
from labse_tf.errors import InputError
from labse_tf.registry import Command

COMMANDS = {
    ("mine-negatives",): Command(__name__, "mine hard negatives with a weaker dual encoder")
}
SECTIONS = {"negatives": "labse_tf.systems.hard_negatives.config"}

EXAMPLES = """examples:
  labse mine-negatives clean/bitext --vocab vocab.txt --run-dir runs/miner --out negatives
  labse mine-negatives clean/bitext --vocab vocab.txt --run-dir runs/miner --out negatives \\
      --set train.steps=5000 --set negatives.encoder.bigram_buckets=0
  labse mine-negatives clean/bitext/de --model runs/miner --out more --count 5
  labse mine-negatives clean/bitext --model model --out negatives

  labse train configs/tiny.yaml --run-dir runs/dual --set train.bitext=[negatives] \\
      --set train.hard_negatives=3 --set tokenizer.vocab_file=vocab.txt

DIR/<lang>.tsv.gz has the columns source, target, negative 1 to N; DIR/report.json has their numbers
and similarities. INPUT is a corpus that `labse train` reads: clean shards,
<lang>.tsv[.gz|.xz|.bz2|.zst], Moses pairs or <lang>.tfrecord[.gz].

To resume an interrupted job from the last checkpoint, or after the last language, run the same
command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="mine with this model dir, or the run dir of an earlier job, without training",
    )
    parser.add_argument("--config", metavar="FILE", help="a YAML preset (default: built-in values)")
    parser.add_argument("--vocab", metavar="FILE", help="vocabulary for the model to train")
    parser.add_argument(
        "--count",
        type=int,
        default=3,
        metavar="N",
        help="negatives per pair, if that many are found (default: %(default)s)",
    )
    parser.add_argument(
        "--pool-size",
        type=int,
        default=200_000,
        metavar="N",
        help="search at most about N pairs of a language together; time grows with the square of "
        "N, memory is at least 2 KB times N (default: %(default)s)",
    )
    parser.add_argument(
        "--max-similarity",
        type=float,
        default=0.9,
        metavar="X",
        help="leave out targets that are more similar than this to the source's translation, or "
        "paired with a source that is; 1 leaves out known translations only "
        "(default: %(default)s)",
    )
    add_run(parser, "labse_tf.systems.hard_negatives.config:NegativesRun", required=False)


def run(args: argparse.Namespace) -> None:
    config = _read_config(args)
    from labse_tf.files.corpus_files import BITEXT, find_plain_files
    from labse_tf.systems.hard_negatives.mine import check_options

    find_plain_files(args.inputs, kind=BITEXT)
    check_options(args.out, **_mining_options(args))
    if config is None:
        _mine(args, args.model)
        return
    from labse_tf.config import changed
    from labse_tf.systems.hard_negatives.averaging_encoder import train
    from labse_tf.training.distribution import is_chief
    from labse_tf.training.fit import launch
    from labse_tf.training.runs.run_dir import resolve

    vocab_file = args.vocab or config.tokenizer.vocab_file
    given = {"train.bitext": args.inputs, "tokenizer.vocab_file": vocab_file}
    config = resolve(changed(config, given), args.inputs)
    with launch(args.run_dir, config, **strategy_options(args)) as (run_dir, strategy):
        train(config, run_dir, strategy)
    if is_chief(args.strategy):
        _mine(args, args.run_dir, languages=config.languages)


def _read_config(args: argparse.Namespace):
    """Returns the configuration of the training; None if --model needs none."""
    if bool(args.model) == bool(args.run_dir):
        raise InputError(
            "give either --run-dir, to train a model, or --model, to use one",
            remedy="see the examples in `labse mine-negatives --help`",
        )
    if not args.model:
        return read_config(args)
    given = {"--config": args.config, "--vocab": args.vocab, "--set": args.overrides}
    for name, value in given.items():
        if value:
            raise InputError(
                f"{name} has no effect with --model, which does not train",
                remedy=f"leave {name} out, or give --run-dir instead of --model",
            )
    return None


def _mining_options(args: argparse.Namespace) -> dict:
    names = ("count", "pool_size", "max_similarity", "overwrite")
    return {name: getattr(args, name) for name in names}


def _mine(args: argparse.Namespace, model: str, *, languages: Sequence[str] = ()) -> None:
    from labse_tf.systems.hard_negatives.averaging_encoder import open_model
    from labse_tf.systems.hard_negatives.mine import mine

    encoder, files = open_model(model)
    options = {"model_files": files, "languages": languages, **_mining_options(args)}
    mine(args.inputs, args.out, encoder, **options)
