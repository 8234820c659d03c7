"""A Hugging Face directory: for `transformers.BertModel` and for `SentenceTransformer(path)`.

Its modules are those of `sentence-transformers/LaBSE`: the transformer, [CLS] pooling, a Dense
layer with tanh, which is BERT's pooler, and normalisation. With `encoder.pooling` "mean", these are
mean pooling and a Dense layer without an activation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from export.source import Source
from labse_tf.model.encoder import TYPE_VOCAB_SIZE
from labse_tf.model.huggingface_bert import (
    ACTIVATION_OF_POOLER,
    ACTIVATIONS,
    CONFIG_FILE,
    LAYER_NORM_EPSILON,
    MODULES_FILE,
    POOLING_MODES,
    VOCAB_FILE,
    WEIGHTS_FILE,
    to_tensors,
)
from vocab import wordpiece_file

POOLING, DENSE, NORMALIZE = "1_Pooling", "2_Dense", "3_Normalize"


def save_huggingface(source: Source, folder: Path, *, length: int) -> None:
    """Writes the directory.

    Args:
      source: the model to export.
      folder: the model dir; Hugging Face also shows its README.md.
      length: sentence-transformers truncates texts to this many tokens.
    """
    sizes, tensors = source.config, to_tensors(source.encoder.variables)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    # Hugging Face divides words at all Unicode spaces, so it would never use the renamed pieces.
    wordpiece_file.write(folder / VOCAB_FILE, wordpiece_file.rename_misread(source.tokens))
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    write_json(
        folder / CONFIG_FILE,
        {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": sizes.vocab_size,
            "hidden_size": sizes.hidden_size,
            "num_hidden_layers": sizes.num_layers,
            "num_attention_heads": sizes.num_attention_heads,
            "intermediate_size": sizes.intermediate_size,
            "max_position_embeddings": sizes.max_positions,
            "type_vocab_size": TYPE_VOCAB_SIZE,
            "hidden_act": names[sizes.activation],
            "hidden_dropout_prob": sizes.dropout,
            "attention_probs_dropout_prob": sizes.dropout,
            "initializer_range": sizes.initializer_range,
            "layer_norm_eps": LAYER_NORM_EPSILON,
            "position_embedding_type": "absolute",
            "pad_token_id": 0,
        },
    )
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False,
        "strip_accents": False,
        "tokenize_chinese_chars": True,
        "model_max_length": length,
    }
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")
    }
    write_json(folder / "tokenizer_config.json", {**tokenizer, **special})
    _write_pipeline(folder, sizes.hidden_size, length, POOLING_MODES[sizes.pooling])
    (folder / DENSE).mkdir()
    dense = {"linear.weight": "pooler.dense.weight", "linear.bias": "pooler.dense.bias"}
    save_file(
        {theirs: tensors[name] for theirs, name in dense.items()},
        folder / DENSE / WEIGHTS_FILE,
        metadata={"format": "pt"},
    )
    write_json(
        folder / DENSE / CONFIG_FILE,
        {
            "in_features": sizes.hidden_size,
            "out_features": sizes.hidden_size,
            "bias": True,
            "activation_function": ACTIVATION_OF_POOLER[sizes.pooling],
        },
    )


def _write_pipeline(folder: Path, dim: int, length: int, pooling_mode: str) -> None:
    write_modules(
        folder,
        {"Transformer": "", "Pooling": POOLING, "Dense": DENSE, "Normalize": NORMALIZE},
    )
    (folder / POOLING).mkdir()
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    chosen = {f"pooling_mode_{mode}": mode == pooling_mode for mode in modes}
    write_json(folder / POOLING / CONFIG_FILE, {"word_embedding_dimension": dim, **chosen})
    (folder / NORMALIZE).mkdir()
    settings = {"max_seq_length": length, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", settings)


def write_modules(folder: Path, folders: Mapping[str, str]) -> None:
    """Writes `modules.json`: the modules of sentence-transformers, each with its folder."""
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, (kind, path) in enumerate(folders.items())
    ]
    write_json(folder / MODULES_FILE, modules)


def write_json(file: Path, content: Any) -> None:
    """Writes JSON that people can read."""
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
