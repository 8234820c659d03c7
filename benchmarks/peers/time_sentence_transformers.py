"""Steps a second of sentence-transformers' training; run by `benchmarks.train_speed`.

As in train_sentence_transformers.py, but of BERT base; prints the steps a second after as many
steps that are not timed.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from train_sentence_transformers import build, read_pairs
from transformers import TrainerCallback


class Clock(TrainerCallback):
    def __init__(self):
        self.times = []

    def on_step_end(self, args, state, control, **kwargs):
        self.times.append(time.perf_counter())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", type=Path)
    parser.add_argument("vocab")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    args.hidden_size, args.heads, args.intermediate_size, args.length = 768, 12, 3072, 64
    torch.manual_seed(42)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        model = build(args.vocab, Path(folder), args)
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=folder,
                max_steps=2 * args.steps,
                per_device_train_batch_size=args.batch_size,
                learning_rate=1e-4,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                seed=42,
            ),
            train_dataset=read_pairs(args.pairs),
            loss=MultipleNegativesRankingLoss(model, scale=20.0),
            callbacks=[clock],
        )
        trainer.train()
    print(args.steps / (clock.times[-1] - clock.times[args.steps - 1]))


if __name__ == "__main__":
    main()
