"""LiteRT's fallback: a model whose vectors do not bear int8 activations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from export.lite import LITE_FILE, _convert, save_lite
from export.packed_table import LEAST_COSINE, least_cosine
from export.source import Source
from labse_tf.config import EncoderConfig
from labse_tf.embedding.model_dir import LiteRuntime
from labse_tf.model.encoder import build_encoder, embed

ROWS = 4000


@pytest.fixture
def source():
    """Two columns are 300 times as large as the others, which alone make the vectors."""
    config = EncoderConfig(
        vocab_size=ROWS,
        hidden_size=16,
        num_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_positions=16,
    )
    tf.random.set_seed(1)
    encoder = build_encoder(config)
    scale = np.ones(16, np.float32)
    scale[:2] = 300
    table = encoder.get_embedding_table()
    table.assign(table * scale)
    [pooler] = [v for v in encoder.variables if "pooler_transform/kernel" in v.name]
    pooler.assign(pooler * (scale[:, np.newaxis] == 1))
    return Source(encoder, config, [], 100, None, None)


def test_what_int8_activations_lose_is_kept(source, tmp_path):
    ids = np.random.default_rng(1).integers(104, ROWS, (20, 12)).astype(np.int32)
    inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": 0 * ids}
    vectors = embed(source.encoder, inputs, training=False).numpy()
    plain = tmp_path / "plain.tflite"
    plain.write_bytes(_convert(source.encoder))
    assert least_cosine(LiteRuntime(plain).run(inputs), vectors) < LEAST_COSINE
    save_lite(source, tmp_path, inputs=inputs, vectors=vectors)
    assert least_cosine(LiteRuntime(tmp_path / LITE_FILE).run(inputs), vectors) >= LEAST_COSINE
    assert (tmp_path / LITE_FILE).stat().st_size < 4 * source.encoder.count_params()


def test_a_row_of_zeros_has_no_cosine():
    rows = np.array([[3, 4], [1, 0]], np.float32)
    assert least_cosine(rows, 2 * rows) == pytest.approx(1)
    assert least_cosine(np.zeros_like(rows), rows) == 0
