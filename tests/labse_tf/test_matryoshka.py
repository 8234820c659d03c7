"""Vectors whose first columns are vectors: the loss by NumPy, and all that it goes with."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from config_kinds import KINDS
from tiny_encoder import TINY_ENCODER, packed

from labse_tf.config import TrainConfig, load_config
from labse_tf.data.pairs import NO_KEY
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.training.objectives import DualEncoder, all_inputs

PAIRS, NEGATIVES, LENGTH, WIDTH = 6, 2, 5, 8
DIMS = [6, 3, 1]
PLAIN = TrainConfig(margin=0.3, scale=10.0, hard_negatives=NEGATIVES)
NESTED = dataclasses.replace(PLAIN, matryoshka=DIMS)


def token_inputs(generator, *shape):
    return packed(generator.integers(5, 40, (*shape, LENGTH)))


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(4)
    keys = np.arange(10, 10 + 2 * PAIRS, dtype=np.int32).reshape(PAIRS, 2)
    keys[3, 1] = keys[0, 1]  # Pairs 0 and 3 have the same target.
    return {
        "source": token_inputs(generator, PAIRS),
        "target": token_inputs(generator, PAIRS),
        "keys": tf.constant(keys),
        "negatives": token_inputs(generator, PAIRS, NEGATIVES),
        # The first of pair 1 is the target of pairs 0 and 3, the second of pair 2 is none.
        "negative_keys": tf.constant(
            [[50, 51], [int(keys[0, 1]), 53], [54, NO_KEY], [56, 57], [58, 59], [60, 61]]
        ),
    }


STEP = tf.constant(0, tf.int64)


def make_objective(settings, layers=1):
    tf_keras.utils.set_random_seed(1)
    more = {"num_layers": layers, "pooling": "cls" if layers else "mean"}
    config = dataclasses.replace(TINY_ENCODER, initializer_range=0.5, **more)
    encoder = build_encoder(config, replayable=True)
    return encoder, DualEncoder(encoder, settings)


def numpy_loss(vectors, dim):
    """Equations 2 to 4 of the first `dim` columns, hard negatives behind the targets."""
    vectors = vectors[:, :dim] / np.sqrt(np.square(vectors[:, :dim]).sum(axis=1, keepdims=True))
    source, target, negatives = np.split(vectors, [PAIRS, 2 * PAIRS])
    total = 0.0
    for queries, candidates in ((source, np.concatenate([target, negatives])), (target, source)):
        for row, query in enumerate(queries):
            logits = 10 * (candidates @ query)
            logits[row] -= 3
            if row in (0, 3):
                logits[3 - row] = -np.inf
            if candidates is not source and len(negatives):  # Those behind the targets.
                logits[PAIRS + 5] = -np.inf
                if row in (0, 3):
                    logits[PAIRS + 2] = -np.inf
            total += np.log(np.exp(logits).sum()) - logits[row]
    return total / PAIRS


@pytest.mark.parametrize(("layers", "with_negatives"), [(0, False), (1, True)])
def test_the_loss_by_numpy(batch, layers, with_negatives):
    settings = NESTED
    if not with_negatives:
        batch = {name: value for name, value in batch.items() if "negative" not in name}
        settings = dataclasses.replace(NESTED, hard_negatives=0)
    encoder, objective = make_objective(settings, layers)
    vectors = embed(encoder, all_inputs(batch), training=False).numpy().astype(np.float64)
    expected = np.mean([numpy_loss(vectors, dim) for dim in [WIDTH, *DIMS]])
    loss, accuracy = objective.loss(batch, STEP)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    unmasked = make_objective(dataclasses.replace(settings, mask_duplicates=False), layers)[1]
    assert unmasked.loss(batch, STEP)[0] > loss
    # The accuracy is that of the full vectors, as without nested ones.
    plain, named = (
        make_objective(dataclasses.replace(settings, matryoshka=dims), layers)[1]
        for dims in ([], [WIDTH])
    )
    assert accuracy == plain.loss(batch, STEP)[1]
    # The own dimension alone is the plain loss.
    assert NESTED.dims(WIDTH) == [WIDTH, *DIMS]
    both = [one.gradients(batch, STEP, lazy=True) for one in (plain, named)]
    for one, other in zip(*map(tf.nest.flatten, both), strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(one), tf.convert_to_tensor(other))


def test_spare_columns_of_a_table_stay_0(batch):
    """They are the last two; a dimension that reaches into them changes nothing there."""
    settings = dataclasses.replace(NESTED, matryoshka=[WIDTH - 1, 3])
    encoder, objective = make_objective(settings, layers=0)
    gradient = tf.convert_to_tensor(objective.gradients(batch, STEP, lazy=True)[2][0]).numpy()
    assert (encoder.get_embedding_table().numpy()[:, -2:] == 0).all()
    assert (gradient[:, -2:] == 0).all() and (gradient[5:40, :3] != 0).any(axis=0).all()


def test_dimensions(batch):
    """The own one counts once, named or not; those that the encoder does not have are refused."""
    assert NESTED.dims(WIDTH) == [WIDTH, *DIMS]
    assert TrainConfig(matryoshka=[WIDTH, 4]).dims(WIDTH) == [WIDTH, 4]
    assert TrainConfig().dims(WIDTH) == [WIDTH]
    for command, dims, *more in (
        ("train", "[64,128]"),
        ("train", "[64,64]"),
        ("train", "[64,0]"),
        ("train", "[769,64]", "train.bitext=[pairs]"),
        ("distill", "[769,64]", "distill.monolingual=[texts]"),
    ):
        with pytest.raises(InputError, match=r"'train.matryoshka' is "):
            load_config(None, [f"train.matryoshka={dims}", *more], KINDS[command])
    # A network of one's own tells its width when it trains.
    sizes = ["encoder.hidden_size=4", "encoder.num_attention_heads=2", "train.matryoshka=[6]"]
    load_config(None, ["encoder.network=toy_network:MeanOfTokens", *sizes, "train.bitext=[pairs]"])
    objective = make_objective(dataclasses.replace(PLAIN, matryoshka=[WIDTH + 1]))[1]
    with pytest.raises(InputError, match="9 dimensions, and the encoder's vectors 8"):
        objective.loss(batch, STEP)
