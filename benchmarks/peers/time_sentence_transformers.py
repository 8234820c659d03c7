"""Steps per second of sentence-transformers' training; run by `benchmarks.training.train_speed`.

Same as train_sentence_transformers.py, but with BERT base, or with --layers 0 a StaticEmbedding;
prints a JSON object: the steps per second after equally many untimed steps, and the loss of each
step.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import TrainerCallback

from benchmarks.peers.dual_encoder import build, read_pairs


class Clock(TrainerCallback):
    def __init__(self):
        self.times = []

    def on_step_end(self, args, state, control, **kwargs):
        self.times.append(time.perf_counter())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", type=Path)
    parser.add_argument("vocab")
    parser.add_argument("--sample", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--hidden_size", type=int, default=768)
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    torch.manual_seed(42)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        model = build(
            args.vocab,
            args.sample,
            Path(folder) / "initial",
            hidden_size=args.hidden_size,
            layers=args.layers,
            heads=12,
            intermediate_size=3072,
            length=64,
            rows=args.rows,
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=folder,
                max_steps=2 * args.steps,
                per_device_train_batch_size=args.batch_size,
                # As sentence-transformers documents for static embeddings.
                learning_rate=1e-4 if args.layers else 0.2,
                save_strategy="no",
                logging_steps=1,
                report_to="none",
                use_cpu=True,
                seed=42,
            ),
            train_dataset=read_pairs(args.pairs),
            loss=MultipleNegativesRankingLoss(model, scale=20.0),
            callbacks=[clock],
        )
        trainer.train()
    losses = [logs["loss"] for logs in trainer.state.log_history if "loss" in logs]
    speed = args.steps / (clock.times[-1] - clock.times[args.steps - 1])
    print(json.dumps({"steps_per_second": speed, "losses": losses}))


if __name__ == "__main__":
    main()
