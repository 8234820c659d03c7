"""`labse mine-negatives`: hard negatives, close in meaning to a source that they do not translate.

LaBSE, appendix B; Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence
Embeddings", section 3: a weaker dual encoder, a deep averaging network, finds them.
"""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, add_options
from labse_tf.registry import Command

COMMANDS = {("mine-negatives",): Command(__name__, "mine hard negatives with a dual encoder")}

EXAMPLES = """examples:
  labse train configs/averaging.yaml --run-dir runs/miner --set train.bitext=[clean/bitext] \\
      --set tokenizer.vocab_file=vocab.txt
  labse mine-negatives clean/bitext --model runs/miner --out negatives
  labse mine-negatives clean/bitext/de --model model --out more --count 5

  labse train configs/tiny.yaml --run-dir runs/dual --set train.bitext=[negatives] \\
      --set train.hard_negatives=3 --set tokenizer.vocab_file=vocab.txt

DIR/<lang>.tsv.gz has the columns source, target, negative 1 to N; DIR/report.json has their numbers
and similarities. INPUT is a corpus that `labse train` reads: clean shards,
<lang>.tsv[.gz|.xz|.bz2|.zst], Moses pairs or <lang>.tfrecord[.gz].

To resume an interrupted job after the last language, run the same command again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        INPUTS,
        """
        --out DIR!: folder to write
        --model DIR!: a model dir, or a run dir of `labse train`
        --count N=3: negatives per pair, if that many are found
        --pool-size N=200000: search at most about N pairs of a language together; time grows with
          the square of N, memory is at least 2 KB times N
        --max-similarity X=0.9: leave out targets that are more similar than this to the source's
          translation, or paired with a source that is; 1 leaves out known translations only
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.systems.hard_negatives.mine import mine, open_model

    encoder, model_file = open_model(args.model)
    names = ("count", "pool_size", "max_similarity", "overwrite")
    options = {name: getattr(args, name) for name in names}
    mine(args.inputs, args.out, encoder, model_file=model_file, **options)
