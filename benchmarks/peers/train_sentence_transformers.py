"""The race's other side: sentence-transformers on the same pairs, vocabulary, size and minutes.

    PEER/bin/python benchmarks/peers/train_sentence_transformers.py DATA/train VOCAB TEST --out DIR

The recipe of its documentation for pairs: BertModel, mean pooling, MultipleNegativesRankingLoss
(scale 20), AdamW. DATA/train is that of `benchmarks.tatoeba_race prepare`, VOCAB a vocab.txt, TEST
the files of LASER's Tatoeba test. Prints as `benchmarks.tatoeba_race score` does. Environment:
requirements-sentence-transformers.txt beside this file.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast, TrainerCallback


class StopAfter(TrainerCallback):
    def __init__(self, minutes):
        self._minutes = minutes
        self._start = None

    def on_train_begin(self, args, state, control, **kwargs):
        self._start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        if time.perf_counter() - self._start > 60 * self._minutes:
            control.should_training_stop = True


def build(vocab, out, args):
    tokenizer = BertTokenizerFast(vocab_file=vocab, do_lower_case=False, strip_accents=False)
    config = BertConfig(
        vocab_size=args.rows or len(tokenizer),
        hidden_size=args.hidden_size,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=args.intermediate_size,
    )
    folder = out / "initial"
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    transformer = Transformer(str(folder), max_seq_length=args.length)
    return SentenceTransformer(modules=[transformer, Pooling(args.hidden_size, "mean")])


def read_pairs(folder):
    lines = (
        line.rstrip("\n").split("\t")
        for path in sorted(folder.rglob("*.tsv"))
        for line in path.open(encoding="utf-8", newline="\n")
    )
    english, foreign = zip(*lines, strict=True)
    return Dataset.from_dict({"anchor": list(english), "positive": list(foreign)})


def score(model, test, counts):
    accuracies = {}
    for path in sorted(test.glob("tatoeba.*-eng.eng")):
        code = path.name.split(".")[1].removesuffix("-eng")
        english = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        foreign = path.with_suffix(f".{code}").read_text(encoding="utf-8").rstrip("\n").split("\n")
        sides = [model.encode(side, normalize_embeddings=True) for side in (foreign, english)]
        hits = (sides[0] @ sides[1].T).argmax(axis=1) == np.arange(len(english))
        accuracies[code] = hits.mean()
        print(f"{code} {100 * accuracies[code]:.1f}")
    seen = [code for code in accuracies if counts.get(code, 0) >= 1000]
    for name, codes in (("all", list(accuracies)), ("with 1,000 training pairs", seen)):
        mean = 100 * np.mean([accuracies[code] for code in codes])
        print(f"mean over {len(codes)} languages, {name}: {mean:.1f} %")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("vocab")
    parser.add_argument("test", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--steps", type=int, default=1473, help="what 40 minutes allowed")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rows", type=int, help="of the embedding table; the tokens' by default")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden-size", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--intermediate-size", type=int, default=1024)
    parser.add_argument("--length", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(42)
    model = build(args.vocab, args.out, args)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(args.out / "run"),
            max_steps=args.steps,
            per_device_train_batch_size=args.batch_size,
            learning_rate=5e-4,
            warmup_ratio=0.1,
            save_strategy="no",
            logging_steps=50,
            report_to="none",
            use_cpu=True,
            seed=42,
        ),
        train_dataset=read_pairs(args.pairs),
        loss=MultipleNegativesRankingLoss(model, scale=20.0),
        callbacks=[StopAfter(args.minutes)],
    )
    start = time.perf_counter()
    trainer.train()
    minutes = (time.perf_counter() - start) / 60
    print(f"{trainer.state.global_step} steps in {minutes:.1f} minutes")
    counts = json.loads((args.pairs.parent / "counts.json").read_text(encoding="utf-8"))
    score(model, args.test, counts)


if __name__ == "__main__":
    main()
