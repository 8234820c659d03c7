"""The sentence-transformers dual encoder that ours is compared with; checked before training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast

from benchmarks.peers.same_work import check_rows, check_tokens, check_vocabulary
from vocab import wordpiece_file


def build(
    vocab: str,
    sample: Path,
    folder: Path,
    *,
    hidden_size: int,
    layers: int,
    heads: int,
    intermediate_size: int,
    length: int,
    rows: int | None = None,
) -> SentenceTransformer:
    """Returns a BERT of random weights with mean pooling; without layers, a StaticEmbedding.

    Args:
      vocab: vocab.txt.
      sample: output of `benchmarks.peers.tokens`: texts with our ids.
      folder: for BERT's files; must not exist.
      rows: rows of the embedding table; one per token by default.
    """
    tokens = wordpiece_file.read(vocab)
    # Given a path, BERT would strip white space from its lines, which may shift ids.
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = BertTokenizerFast(vocab=ids, do_lower_case=False, strip_accents=False)
    if not layers:
        fast = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        static = StaticEmbedding(fast, embedding_dim=hidden_size)
        model = SentenceTransformer(modules=[static], device="cpu")
        check_vocabulary(tokens, fast.get_vocab())
        check_rows(static.embedding.num_embeddings, fast.get_vocab_size())
        _check_tokens(sample, lambda texts: [one.ids for one in fast.encode_batch(texts)])
        return model
    config = BertConfig(
        vocab_size=rows or len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=intermediate_size,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    transformer = Transformer(str(folder), max_seq_length=length)
    model = SentenceTransformer(modules=[transformer, Pooling(hidden_size, "mean")], device="cpu")
    _check(model, tokens, sample, rows)
    return model


def _check(model: SentenceTransformer, tokens: list[str], sample: Path, rows: int | None) -> None:
    """Checks the model that will be trained, not the files that it was made from."""
    tokenizer = model.tokenizer
    check_vocabulary(tokens, tokenizer.get_vocab())
    table = model[0].auto_model.get_input_embeddings()
    check_rows(table.num_embeddings, len(tokenizer), rows)
    _check_tokens(sample, lambda texts: tokenizer(texts)["input_ids"])


def _check_tokens(sample: Path, tokenize: Callable[[list[str]], list[list[int]]]) -> None:
    ours = json.loads(sample.read_text("utf-8"))
    check_tokens(ours["texts"], ours["ids"], tokenize(ours["texts"]), ours["unknown"])


def read_pairs(folder: Path) -> Dataset:
    lines = (
        line.rstrip("\n").split("\t")
        for path in sorted(folder.rglob("*.tsv"))
        for line in path.open(encoding="utf-8", newline="\n")
    )
    english, foreign = zip(*lines, strict=True)
    return Dataset.from_dict({"anchor": list(english), "positive": list(foreign)})
