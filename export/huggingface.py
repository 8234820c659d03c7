"""A Hugging Face directory: for `transformers.BertModel` and for `SentenceTransformer(path)`.

Its modules are those of `sentence-transformers/LaBSE`: the transformer, [CLS] pooling, a Dense
layer with tanh, which is BERT's pooler, and normalisation. With `encoder.pooling` "mean", these are
mean pooling and a Dense layer without an activation. An encoder without layers becomes a
`StaticEmbedding`: sentence-transformers too averages the tokens of a text, without [CLS] and [SEP].
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

POOLING, DENSE = "1_Pooling", "2_Dense"
STATIC_EMBEDDING = "0_StaticEmbedding"


def save_huggingface(source: Source, folder: Path, *, length: int) -> None:
    """Writes the directory, of texts truncated to `length` tokens, into the model dir `folder`."""
    # Hugging Face divides words at all Unicode spaces, so it would never use the renamed pieces.
    tokens = wordpiece_file.rename_misread(source.tokens)
    wordpiece_file.write(folder / VOCAB_FILE, tokens)
    if source.config.num_layers:
        _write_bert(source, folder, length)
    else:
        _write_static_embedding(source, tokens, folder)


def _write_bert(source: Source, folder: Path, length: int) -> None:
    sizes, tensors = source.config, to_tensors(source.encoder.variables)
    _write_tensors(folder / WEIGHTS_FILE, tensors)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    config = {
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
    }
    _write_json(folder / CONFIG_FILE, config)
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False,
        "strip_accents": False,
        "tokenize_chinese_chars": True,
        "model_max_length": length,
    }
    special = {
        f"{kind}_token": f"[{kind.upper()}]" for kind in ["unk", "sep", "pad", "cls", "mask"]
    }
    _write_json(folder / "tokenizer_config.json", tokenizer | special)

    modules = {"Transformer": "", "Pooling": POOLING, "Dense": DENSE, "Normalize": "3_Normalize"}
    _write_modules(folder, modules)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    chosen = {f"pooling_mode_{mode}": mode == POOLING_MODES[sizes.pooling] for mode in modes}
    pooling = {"word_embedding_dimension": sizes.hidden_size, **chosen}
    _write_json(folder / POOLING / CONFIG_FILE, pooling)
    settings = {"max_seq_length": length, "do_lower_case": False}
    _write_json(folder / "sentence_bert_config.json", settings)
    pooler = {f"linear.{part}": tensors[f"pooler.dense.{part}"] for part in ("weight", "bias")}
    _write_tensors(folder / DENSE / WEIGHTS_FILE, pooler)
    dense = {
        "in_features": sizes.hidden_size,
        "out_features": sizes.hidden_size,
        "bias": True,
        "activation_function": ACTIVATION_OF_POOLER[sizes.pooling],
    }
    _write_json(folder / DENSE / CONFIG_FILE, dense)


def _write_static_embedding(source: Source, tokens: list[str], folder: Path) -> None:
    _write_modules(folder, {"StaticEmbedding": STATIC_EMBEDDING, "Normalize": "1_Normalize"})
    table = {"embedding.weight": source.encoder.get_embedding_table().numpy()}
    _write_tensors(folder / STATIC_EMBEDDING / WEIGHTS_FILE, table)
    reserved = set(wordpiece_file.RESERVED_TOKENS)
    kind = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": token, **kind, "special": True}
            for number, token in enumerate(tokens)
            if token in reserved
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": False,
            "lowercase": False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": source.max_bytes_per_word,
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }
    _write_json(folder / STATIC_EMBEDDING / "tokenizer.json", tokenizer)


def _write_modules(folder: Path, folders: Mapping[str, str]) -> None:
    """Makes the folders of the modules of sentence-transformers, and lists them."""
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (kind, path) in enumerate(folders.items())
    ]
    for path in folders.values():
        (folder / path).mkdir(exist_ok=True)
    _write_json(folder / MODULES_FILE, modules)


def _write_tensors(file: Path, tensors: Mapping[str, Any]) -> None:
    save_file(tensors, file, metadata={"format": "pt"})


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
