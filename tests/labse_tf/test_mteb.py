"""The encoder for MTEB: its interface, and what it tells of a model."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hashed_encoders import HashedCharacters
from tiny_encoder import TINY_ENCODER
from tiny_text import SENTENCES

from labse_tf.embedding.open import open_encoder
from labse_tf.model.encoder import build_encoder
from labse_tf.mteb import MtebEncoder, count_parameters, describe

ENCODER = "hashed_encoders:hashed"


def test_batches_are_embedded_in_order():
    batches = [{"text": SENTENCES[:3], "title": ["", "", ""]}, {"text": SENTENCES[3:]}]
    found = MtebEncoder(ENCODER, device="cpu", other=1).encode(
        iter(batches), task_metadata=None, hf_split="test", hf_subset="de", prompt_type="query"
    )
    np.testing.assert_array_equal(found, HashedCharacters().encode(SENTENCES))
    assert MtebEncoder(ENCODER, dim=8).encode(batches).shape == (len(SENTENCES), 8)
    # Similarities are cosines.
    encoder = MtebEncoder(ENCODER)
    one, other = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([[0.0, 1.0], [0.8, 0.6]])
    np.testing.assert_allclose(encoder.similarity(one, other), [[0.8, 0.96], [0.0, 0.8]])
    np.testing.assert_allclose(encoder.similarity(one[0], other[0]), [[0.8]])
    np.testing.assert_allclose(encoder.similarity_pairwise(one, other), [0.8, 0.8])


@pytest.mark.parametrize(
    "changes", [{"num_layers": 3, "intermediate_size": 24, "vocab_size": 50}, {"num_layers": 0}]
)
def test_parameters_are_those_of_the_encoder(changes):
    config = dataclasses.replace(TINY_ENCODER, **changes)
    expected = sum(int(np.prod(one.shape)) for one in build_encoder(config).trainable_variables)
    assert count_parameters(dataclasses.asdict(config)) == expected


def test_what_model_json_tells(tmp_path):
    sizes = dataclasses.asdict(TINY_ENCODER)
    content = {"encoder": sizes, "languages": ["de", "th"], "licence": "MIT"}
    (tmp_path / "model.json").write_text(json.dumps(content), "utf-8")
    facts = {"name": str(tmp_path), "kind": "model dir", "model_sha256": "12" * 32}
    found = describe(facts | {"dim": 16, "sequence_length": 24})
    assert found["name"] == f"labse_tf/{tmp_path.name}" and found["revision"] == "12" * 6
    assert found["languages"] == ["deu-Latn", "tha-Thai"] and found["license"] == "MIT"
    assert (found["embed_dim"], found["max_tokens"]) == (16, 24)
    assert found["n_parameters"] == count_parameters(sizes)
    assert found["memory_usage_mb"] == 4 * found["n_parameters"] / 2**20


def test_of_a_python_object_little_is_known():
    found = describe(open_encoder(ENCODER).facts())
    unknown = ("languages", "n_parameters", "memory_usage_mb", "max_tokens", "license")
    assert all(found[name] is None for name in unknown)
    assert found["name"] == f"labse_tf/{ENCODER}" and found["similarity_fn_name"] == "cosine"
