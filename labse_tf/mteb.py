"""Any encoder in MTEB (`pip install 'labse-tf[mteb]'`), the massive text embedding benchmark.

Example, for the benchmark's own copy of Tatoeba:

    import mteb
    from labse_tf.mteb import MtebEncoder

    tasks = mteb.get_tasks(tasks=["Tatoeba"])
    mteb.evaluate(MtebEncoder("model"), tasks)

`examples/mteb_run.py` is the same as a command. MTEB is imported for the metadata alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.model_dir import ModelDir
from labse_tf.embedding.open import SENTENCE_TRANSFORMERS, open_encoder
from labse_tf.languages import is_code, script_of, three_letter_code

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

_HASH_DIGITS = 12
_BYTES_OF_A_NUMBER, _MEGABYTE = 4, 2**20
# Fields of ModelMeta that are required, and that no encoder tells.
_UNKNOWN = ("release_date", "open_weights", "public_training_code", "public_training_data")
_UNKNOWN += ("training_datasets",)


class MtebEncoder:
    """An encoder of `open_encoder` with MTEB's interface.

    Rows have unit length, so that similarities are cosines. Queries and documents are embedded
    alike, without prompts.
    """

    def __init__(
        self,
        model_name: str,
        revision: str | None = None,
        *,
        device: str | None = None,
        dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Opens an encoder by a name that `open_encoder` takes; raises InputError if it cannot.

        `revision` is for the metadata; MTEB's cache tells models apart by it. By default it is the
        hash of the model, if that is known. `device` and further arguments are ignored.
        """
        self._encoder = open_encoder(model_name, dim=dim)
        self._revision = revision

    def encode(self, inputs: Iterable[Mapping[str, Any]], **kwargs: Any) -> np.ndarray:
        """Returns float32 `[texts, dim]`, unit rows, of batches with a list of strings, `text`."""
        return self._encoder.encode([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """Returns the cosines `[n, m]` of `[n, dim]` and `[m, dim]`; one vector is `[1, dim]`."""
        return np.atleast_2d(embeddings1) @ np.atleast_2d(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> np.ndarray:
        """Returns the cosines `[n]` of the rows of two `[n, dim]`."""
        return np.einsum("nd,nd->n", np.atleast_2d(embeddings1), np.atleast_2d(embeddings2))

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """MTEB's metadata, from the model dir's facts where there are some."""
        from mteb.models.model_meta import ModelMeta

        return ModelMeta(
            loader=type(self), **describe(self._encoder.facts(), revision=self._revision)
        )


def describe(encoder: Mapping[str, Any], *, revision: str | None = None) -> dict[str, Any]:
    """Returns the fields of MTEB's ModelMeta, from `OpenedEncoder.facts`; unknown ones are None."""
    name = encoder["name"]
    facts = ModelDir(name).facts
    # MTEB's names have an owner.
    is_hub_name = encoder["kind"] == SENTENCE_TRANSFORMERS and "/" in name
    published = is_hub_name and not os.path.exists(name)
    sizes = facts.get("encoder", {})
    parameters = count_parameters(sizes) if sizes else None
    languages = facts.get("languages")
    return {
        "name": name if published else f"labse_tf/{Path(name).name}",
        "revision": revision or (encoder.get("model_sha256") or "")[:_HASH_DIGITS] or None,
        "languages": languages and [_mteb_code(code) for code in languages if is_code(code)],
        "n_parameters": parameters,
        "n_embedding_parameters": sizes and sizes["vocab_size"] * sizes["hidden_size"] or None,
        "memory_usage_mb": parameters and parameters * _BYTES_OF_A_NUMBER / _MEGABYTE,
        "max_tokens": encoder["sequence_length"],
        "embed_dim": encoder["dim"],
        "license": facts.get("licence"),
        "framework": ["TensorFlow"] if facts else [],
        "similarity_fn_name": "cosine",
        "use_instructions": False,
        **dict.fromkeys(_UNKNOWN),
    }


def count_parameters(sizes: Mapping[str, Any]) -> int:
    """Returns the number of weights of an encoder with the sizes of `EncoderConfig`."""
    from labse_tf.config.plan import count_weights

    return sum(count_weights(SimpleNamespace(**sizes), sizes["num_layers"]))


def _mteb_code(code: str) -> str:
    return f"{three_letter_code(code)}-{script_of(code)}"
