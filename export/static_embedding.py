"""The `StaticEmbedding` directory of sentence-transformers: an encoder without layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from export.huggingface import write_json, write_modules
from export.source import Source
from vocab import wordpiece_file

STATIC_EMBEDDING, NORMALIZE = "0_StaticEmbedding", "1_Normalize"
_VOCAB_FILE = "vocab.txt"


def save_static_embedding(source: Source, folder: Path) -> None:
    """Writes what `SentenceTransformer(folder)` opens: the table, a tokenizer, and unit length.

    sentence-transformers averages the tokens of a text, without [CLS] and [SEP], as
    `StaticEncoder` does.

    Args:
      source: an encoder without layers.
      folder: the model dir.
    """
    # Hugging Face splits words at all spaces of Unicode: it would find none of these pieces.
    tokens = wordpiece_file.rename_misread(source.tokens)
    wordpiece_file.write(folder / _VOCAB_FILE, tokens)
    inner = folder / STATIC_EMBEDDING
    inner.mkdir()
    table = source.encoder.get_embedding_table().numpy()
    save_file({"embedding.weight": table}, inner / "model.safetensors", metadata={"format": "pt"})
    write_json(inner / "tokenizer.json", _tokenizer(tokens, source.max_bytes_per_word))
    (folder / NORMALIZE).mkdir()
    write_modules(folder, {"StaticEmbedding": STATIC_EMBEDDING, "Normalize": NORMALIZE})


def _tokenizer(tokens: list[str], max_characters_per_word: int) -> dict[str, Any]:
    """Returns a cased BERT tokeniser in the format of Hugging Face's `tokenizers`."""
    special = [token for token in wordpiece_file.RESERVED_TOKENS if token in tokens]
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": tokens.index(token),
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in sorted(special, key=tokens.index)
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
            "max_input_chars_per_word": max_characters_per_word,
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }
