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

    def __init__(self, args, checkpoint):
        self._args, self._checkpoint = args, checkpoint
        self._start = self._paused = 0.0
        self.losses = []

    def minutes(self):
        """Returns the minutes of training, without checkpoints."""
        return (time.perf_counter() - self._start - self._paused) / 60 if self._start else 0.0

    def learning_rate(self, step):
        """Returns the learning rate as a share of its maximum."""
        spent = self._spent(step)
        return max(0.0, min(spent / _WARM_UP, (1 - spent) / (1 - _WARM_UP)))

    def _spent(self, step):
        return step / self._args.steps if self._args.steps else self.minutes() / self._args.minutes

    def on_train_begin(self, args, state, control, **kwargs):
        self._start = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses.append((state.global_step, logs["loss"]))

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = ends = self._spent(state.global_step) >= 1
        if not ends and state.global_step % self._args.checkpoint_steps == 0:
            start = time.perf_counter()
            self._checkpoint(state.global_step)
            self._paused += time.perf_counter() - start


def write_result(args, model, budget, scores, steps, *, finished):
    """Adds the model's scores to `scores`, writes the result so far; ends if it learns nothing."""
    minutes, counts = budget.minutes(), args.pairs.parent / "counts.json"

    def encode(texts):
        return model.encode(texts, normalize_embeddings=True, show_progress_bar=False)

    found = score_tests(encode, args.test, counts) if args.test else {}
    scores.append({"step": steps, "minutes": round(minutes, 5), **found})
    packages = ("sentence-transformers", "transformers", "tokenizers", "torch")
    result = {
        "finished": finished,
        "machine": machine.describe(),
        "versions": {name: version(name) for name in packages},
        "settings": vars(args),
        "scores": scores,
        "losses": budget.losses,
    }
    file = args.out / "result.json"
    partial = file.with_suffix(".json.partial")
    partial.write_text(json.dumps(result, indent=1, default=str) + "\n", "utf-8")
    os.replace(partial, file)
    print(f"{steps} steps in {minutes:.1f} minutes: {describe(found)}", flush=True)
    if finished or len(budget.losses) >= _ENOUGH_LOSSES:
        check_loss([loss for _, loss in budget.losses], "the peer")


def read_arguments():
    sizes = {"layers": 4, "hidden_size": 256, "heads": 4, "intermediate_size": 1024, "length": 64}
    settings = {"checkpoint_steps": 500, "batch_size": 128, "learning_rate": 5e-4, "seed": 42}
    parser = make_parser(__doc__, "pairs", "vocab", test=[], rows=int, **settings, **sizes)
    parser.add_argument("--sample", type=Path, required=True, help="our tokens of some texts")
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, help=f"of training; {_MINUTES} without --steps")
    budget.add_argument("--steps", type=int, help="however long they take")
    args = parser.parse_args()
    args.minutes = args.minutes or (None if args.steps else _MINUTES)
    if args.out.exists():
        parser.error(f"{args.out} exists; give another --out")
    return args


def main():
    args = read_arguments()
    print(machine.describe(), flush=True)
    torch.manual_seed(args.seed)
    names = ("layers", "hidden_size", "heads", "intermediate_size", "length", "rows")
    sizes = {name: getattr(args, name) for name in names}
    model = build(args.vocab, args.sample, args.out / "initial", **sizes)
    scores = []

    def write(steps, *, finished=False):
        write_result(args, model, budget, scores, steps, finished=finished)

    budget = Budget(args, write)
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
    write(trainer.state.global_step, finished=True)


if __name__ == "__main__":
    main()
