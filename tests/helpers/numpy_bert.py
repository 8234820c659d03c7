"""A small Hugging Face BERT: its directory, and what it computes, in NumPy."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
from safetensors.numpy import save_file

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 16, 2, 4, 24, 32


def dense(tensors, name, x):
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def layer_norm(tensors, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
    return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def bert(tensors, ids, types):
    """[length] ids and types of one sequence -> sequence output, pooled output, logits.

    Devlin et al. 2019; Vaswani et al. 2017.
    """
    name = "bert.embeddings"
    x = tensors[f"{name}.word_embeddings.weight"][ids]
    x = x + tensors[f"{name}.position_embeddings.weight"][: len(ids)]
    x = x + tensors[f"{name}.token_type_embeddings.weight"][types]
    x = layer_norm(tensors, f"{name}.LayerNorm", x)
    for layer in range(LAYERS):
        name = f"bert.encoder.layer.{layer}"
        query, key, value = (
            dense(tensors, f"{name}.attention.self.{part}", x).reshape(len(ids), HEADS, -1)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / math.sqrt(HIDDEN // HEADS)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weights, value).reshape(len(ids), HIDDEN)
        attended = dense(tensors, f"{name}.attention.output.dense", mixed)
        x = layer_norm(tensors, f"{name}.attention.output.LayerNorm", x + attended)
        inner = gelu(dense(tensors, f"{name}.intermediate.dense", x))
        inner = dense(tensors, f"{name}.output.dense", inner)
        x = layer_norm(tensors, f"{name}.output.LayerNorm", x + inner)
    pooled = np.tanh(dense(tensors, "bert.pooler.dense", x[:1]))[0]
    name = "cls.predictions.transform"
    hidden = layer_norm(tensors, f"{name}.LayerNorm", gelu(dense(tensors, f"{name}.dense", x)))
    logits = hidden @ tensors["bert.embeddings.word_embeddings.weight"].T
    return x, pooled, logits + tensors["cls.predictions.bias"]


def make_tensors(vocab_size):
    generator = np.random.default_rng(3)
    shapes = {
        "bert.embeddings.word_embeddings.weight": (vocab_size, HIDDEN),
        "bert.embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "bert.embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "cls.predictions.bias": (vocab_size,),
        "cls.seq_relationship.weight": (2, HIDDEN),
        "cls.seq_relationship.bias": (2,),
    }
    sizes = {"intermediate.dense": (INNER, HIDDEN), "output.dense": (HIDDEN, INNER)}
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    square = ["bert.pooler.dense", "cls.predictions.transform.dense"]
    for layer in range(LAYERS):
        name = f"bert.encoder.layer.{layer}"
        square += [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        square += [f"{name}.attention.output.dense"]
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        for part, shape in sizes.items():
            shapes[f"{name}.{part}.weight"], shapes[f"{name}.{part}.bias"] = shape, shape[:1]
    for name in square:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (HIDDEN, HIDDEN), (HIDDEN,)
    for name in norms:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (HIDDEN,), (HIDDEN,)
    return {
        name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()
    }


def write_bert(folder, tensors, vocab_file, **changes):
    """Writes the directory; `changes` are of its configuration."""
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "vocab_size": len(next(v for name, v in tensors.items() if "word_embeddings" in name)),
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
    }
    (folder / "config.json").write_text(json.dumps(config | changes), "utf-8")
    shutil.copyfile(vocab_file, folder / "vocab.txt")
    return folder
