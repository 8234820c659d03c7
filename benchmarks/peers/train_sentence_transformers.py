"""The peer in the race: sentence-transformers on the same pairs, vocabulary, size and minutes.

    python -m benchmarks.peers.tokens DATA/train VOCAB --out SAMPLE
    PEER/bin/python -m benchmarks.peers.train_sentence_transformers DATA/train VOCAB \\
        --test NAME=FOLDER --sample SAMPLE --out DIR [--minutes 40 | --steps N] \\
        [--layers 0 --batch-size 2048 --learning-rate 0.2]

The recipe for pairs from its documentation: BertModel, mean pooling, MultipleNegativesRankingLoss
(scale 20), AdamW, a learning rate that rises for a tenth of the budget and falls to 0 at its end;
with --layers 0 a StaticEmbedding. DATA is from `benchmarks.race.data`, VOCAB a vocab.txt, FOLDER as
for `benchmarks.race.score`. Ends before training if its tokens differ from ours, and at the next
checkpoint if its loss does not fall. DIR/result.json has the loss curve and the scores of every
checkpoint, whose own time does not count. Environment: requirements-sentence-transformers.txt in
the same folder. DIR/model has the model, for `labse eval`. `benchmarks.training.train_speed` runs
it without a test, to read the minutes of its checkpoints.
"""

import json
import os
import time
from importlib.metadata import version
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback

from benchmarks import machine, make_parser
from benchmarks.peers.dual_encoder import build, read_pairs
from benchmarks.peers.same_work import check_loss
from benchmarks.race.score import describe, score_tests

_MINUTES = 40
_WARM_UP = 0.1  # Share of the budget.
_NO_END = 10**9  # Steps; training ends by time.
_LOSS_STEPS = 10  # Averaged for one point of the curve.
_ENOUGH_LOSSES = 10  # Needed to decide at a checkpoint that losses do not fall.


class Budget(TrainerCallback):
    """Ends training after the given minutes or steps, with checkpoints on the way."""

    def __init__(self, minutes, steps, checkpoint_steps, checkpoint):
        self._minutes, self._steps = minutes, steps
        self._checkpoint_steps, self._checkpoint = checkpoint_steps, checkpoint
        self._start, self._paused = None, 0.0
        self.losses = []

    def minutes(self):
        """Returns the minutes of training, without checkpoints."""
        if self._start is None:
            return 0.0
        return (time.perf_counter() - self._start - self._paused) / 60

    def learning_rate(self, step):
        """Returns the learning rate as a share of its maximum."""
        spent = self._spent(step)
        return max(0.0, min(spent / _WARM_UP, (1 - spent) / (1 - _WARM_UP)))

    def _spent(self, step):
        return step / self._steps if self._steps else self.minutes() / self._minutes

    def on_train_begin(self, args, state, control, **kwargs):
        self._start = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses.append((state.global_step, logs["loss"]))

    def on_step_end(self, args, state, control, **kwargs):
        if self._spent(state.global_step) >= 1:
            control.should_training_stop = True
            return
        if state.global_step % self._checkpoint_steps == 0:
            start = time.perf_counter()
            self._checkpoint(state.global_step)
            self._paused += time.perf_counter() - start


class Result:
    """The content of DIR/result.json."""

    def __init__(self, model, args):
        self._model, self._args = model, args
        self._scores = []

    def write(self, budget, steps, finished):
        """Scores the model, writes the result so far, and ends if training learns nothing."""
        minutes = budget.minutes()
        self._scores.append({"step": steps, "minutes": round(minutes, 5)})
        counts = self._args.pairs.parent / "counts.json"
        found = score_tests(self._encode, self._args.test, counts) if self._args.test else {}
        self._scores[-1] |= found
        packages = ("sentence-transformers", "transformers", "tokenizers", "torch")
        result = {
            "finished": finished,
            "machine": machine.describe(),
            "versions": {name: version(name) for name in packages},
            "settings": vars(self._args),
            "scores": self._scores,
            "losses": budget.losses,
        }
        file = self._args.out / "result.json"
        partial = file.with_suffix(".json.partial")
        partial.write_text(json.dumps(result, indent=1, default=str) + "\n", "utf-8")
        os.replace(partial, file)
        print(f"{steps} steps in {minutes:.1f} minutes: {describe(found)}", flush=True)
        if finished or len(budget.losses) >= _ENOUGH_LOSSES:
            check_loss([loss for _, loss in budget.losses], "the peer")

    def _encode(self, texts):
        return self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def read_arguments():
    parser = make_parser(__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("vocab")
    parser.add_argument("--test", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--sample", type=Path, required=True, help="our tokens of some texts")
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, help=f"of training; {_MINUTES} without --steps")
    budget.add_argument("--steps", type=int, help="however long they take")
    parser.add_argument("--checkpoint-steps", type=int, default=500, metavar="N")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden-size", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--intermediate-size", type=int, default=1024)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rows", type=int, help="of the embedding table; default: a token each")
    args = parser.parse_args()
    args.minutes = args.minutes or (None if args.steps else _MINUTES)
    if args.out.exists():
        parser.error(f"{args.out} exists; give another --out")
    return args


def main():
    args = read_arguments()
    print(machine.describe(), flush=True)
    torch.manual_seed(args.seed)
    sizes = ("layers", "hidden_size", "heads", "intermediate_size", "length", "rows")
    model = build(
        args.vocab,
        args.sample,
        args.out / "initial",
        **{name: getattr(args, name) for name in sizes},
    )
    result = Result(model, args)
    budget = Budget(
        args.minutes,
        args.steps,
        args.checkpoint_steps,
        lambda steps: result.write(budget, steps, finished=False),
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(args.out / "run"),
            max_steps=args.steps or _NO_END,
            per_device_train_batch_size=args.batch_size,
            learning_rate=args.learning_rate,
            save_strategy="no",
            logging_steps=_LOSS_STEPS,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=args.seed,
        ),
        train_dataset=read_pairs(args.pairs),
        loss=MultipleNegativesRankingLoss(model, scale=20.0),
        callbacks=[budget],
    )
    trainer.create_optimizer()
    trainer.lr_scheduler = LambdaLR(trainer.optimizer, budget.learning_rate)
    trainer.train()
    model.save(str(args.out / "model"))
    result.write(budget, trainer.state.global_step, finished=True)


if __name__ == "__main__":
    main()
