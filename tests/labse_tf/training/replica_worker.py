"""Trains two steps on fixed global batches and saves what came of it; run by test_replicas.py.

`replica_worker.py N CASE,... OUT.npz` does it on N logical CPUs, `replica_worker.py workers ...` as
one worker of the cluster in TF_CONFIG. A process has one strategy: collectives do not share groups.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
import tensorflow as tf
import tf_keras

from labse_tf.config import ComputeConfig, EncoderConfig, TrainConfig
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.model.mlm_head import build_mlm_head, build_slots
from labse_tf.systems.distill.train import Distillation
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.networks import LaserDecoder
from labse_tf.systems.laser.train import Translation
from labse_tf.systems.nli.train import Inference, build_classifier
from labse_tf.training.distribution import create_strategy, distribute
from labse_tf.training.fit import Trainer
from labse_tf.training.objectives import DualEncoder, Joint, MaskedTokens

BATCH, STEPS, VOCAB, PREDICTIONS, NEGATIVES = 12, 2, 60, 4, 2
LENGTHS = (10, 16)  # Of the first and of the second batch: as buckets, unknown to the graph.
ENCODER = EncoderConfig(
    vocab_size=VOCAB,
    hidden_size=16,
    num_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_positions=16,
    dropout=0.0,
)

# Slots come behind the tokens.
JOINT_ENCODER = dataclasses.replace(ENCODER, max_positions=24, pooling="mean")

LSTM_ENCODER = dataclasses.replace(ENCODER, network="bilstm", pooling="max", num_layers=2)
LASER = LaserConfig(targets=["en", "es", "fr"], decoder_size=20, language_size=3, output_size=7)

# name -> (trainer, clip norm, settings of the dual encoder)
CASES = {
    "dual": ("dual", 0.0, {}),
    "dual_local": ("dual", 0.0, {"global_negatives": False}),
    # With hard negatives, and three pairs at a time, through the gradient cache.
    "dual_clipped": ("dual", 0.05, {"hard_negatives": NEGATIVES, "chunk_size": 3}),
    "dual_nested": (
        "dual",
        0.0,
        {"matryoshka": [8, 3], "hard_negatives": NEGATIVES, "chunk_size": 3},
    ),
    "mlm": ("mlm", 0.0, {}),
    "distill": ("distill", 0.0, {"matryoshka": [8, 3]}),
    "inference": ("inference", 0.0, {}),
    "joint": ("joint", 0.0, {"bitext_weight": 0.2}),
    "joint_chunked": ("joint", 0.0, {"bitext_weight": 0.2, "chunk_size": 3}),
    "laser": ("laser", 0.0, {}),
}
SLOTS = 3


def token_inputs(generator, length):
    lengths = generator.integers(3, length + 1, size=(BATCH, 1))
    mask = (np.arange(length)[None] < lengths).astype(np.int32)
    ids = generator.integers(5, VOCAB, size=(BATCH, length)).astype(np.int32) * mask
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}


def dual_batches(negatives=0):
    generator = np.random.default_rng(1)
    # Rows 1 and 9, on different replicas, have the same source text; rows 2 and 3 the same target.
    keys = np.stack([np.arange(BATCH)] * 2, axis=1).astype(np.int32)
    keys[9, 0], keys[3, 1] = 1, 2
    batches = [
        {
            "source": token_inputs(generator, length),
            "target": token_inputs(generator, length),
            "keys": keys,
        }
        for length in LENGTHS
    ]
    if negatives:
        # Of row 0 one is none, of row 1 one is the target of row 4.
        negative_keys = np.arange(100, 100 + BATCH * negatives, dtype=np.int32)
        negative_keys[[0, negatives]] = -1, 4
        for batch, length in zip(batches, LENGTHS, strict=True):
            rows = [token_inputs(generator, length) for _ in range(negatives)]
            batch["negatives"] = {
                name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]
            }
            batch["negative_keys"] = negative_keys.reshape(BATCH, negatives)
    return batches


def mlm_batches():
    generator = np.random.default_rng(2)
    batches = []
    for length in LENGTHS:
        # Rows, and so replicas, have from one to all four predictions.
        counts = np.arange(BATCH)[:, None] % PREDICTIONS + 1
        counts[: BATCH // 2] = 1
        batches.append(
            {
                **token_inputs(generator, length),
                "masked_positions": generator.integers(0, 3, (BATCH, PREDICTIONS), np.int32),
                "masked_ids": generator.integers(5, VOCAB, (BATCH, PREDICTIONS), np.int32),
                "masked_weights": (np.arange(PREDICTIONS)[None] < counts).astype(np.float32),
            }
        )
    return batches


def inference_batches():
    labels = (np.arange(BATCH) % 3).astype(np.int32)
    return [
        {"premise": batch["source"], "hypothesis": batch["target"], "label": labels}
        for batch in dual_batches()
    ]


def laser_batches():
    generator = np.random.default_rng(4)
    languages = (np.arange(BATCH) % 3).astype(np.int32)
    return [
        {
            **token_inputs(generator, length),
            "targets": token_inputs(generator, length)["input_word_ids"],
            "target_language": languages,
        }
        for length in LENGTHS
    ]


def joint_batches():
    """Half as many masked sentences as pairs; their neighbours have a length of their own."""
    generator = np.random.default_rng(3)
    batches = []
    for masked, pairs in zip(mlm_batches(), dual_batches(), strict=True):
        masked = {name: rows[::2] for name, rows in masked.items()}
        neighbour = token_inputs(generator, 7)
        masked["neighbour"] = {name: rows[::2] for name, rows in neighbour.items()}
        batches.append({"masked": masked, "pairs": pairs})
    return batches


def dataset_of(batches, unknown=LENGTHS):
    def spec(array):
        shape = [None if size in unknown else size for size in array.shape]
        return tf.TensorSpec(shape, tf.as_dtype(array.dtype))

    signature = tf.nest.map_structure(spec, batches[0])
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)


def fixed_weights(layer, seed):
    """Matrices large enough that sentences lie apart; biases and layer norms as they are."""
    generator = np.random.default_rng(seed)
    layer.set_weights(
        [w if w.ndim == 1 else generator.normal(0, 0.5, w.shape) for w in layer.get_weights()]
    )


def teacher(inputs):
    """Gives what the ids of a text add up to: any function of the text will do."""
    ids = tf.cast(inputs["input_word_ids"], tf.float32)
    total = tf.reduce_sum(ids, axis=1, keepdims=True)
    return {"default": tf.sin(total * tf.range(1, 25, dtype=tf.float32))}


def fixed(part):
    fixed_weights(part, seed=4)
    return part


def objective_of(kind, encoder, config, settings):
    """Made under the strategy."""
    if kind in ("mlm", "joint"):
        head = fixed(build_mlm_head(config, encoder))
        if kind == "mlm":
            return MaskedTokens(encoder, head)
        # Of the 3 or 6 masked sentences of a replica.
        chunk_size = settings.chunk_size // 3
        masked = MaskedTokens(
            encoder, head, fixed(build_slots(SLOTS, config)), chunk_size=chunk_size
        )
        return Joint(masked, DualEncoder(encoder, settings), weight=settings.bitext_weight)
    if kind == "laser":
        decoder = LaserDecoder(LASER, vocab_size=VOCAB, token_size=16)
        decoder((tf.zeros([1, 16]), tf.zeros([1], tf.int32), tf.ones([1, 4], tf.int32)))
        return Translation(encoder=encoder, decoder=fixed(decoder), end_token=3)
    if kind == "inference":
        classifier = fixed(build_classifier(3, ENCODER.hidden_size))
        return Inference(encoder=encoder, classifier=classifier, train_encoder=True)
    if kind == "distill":
        projection = np.random.default_rng(5).normal(size=(24, ENCODER.hidden_size))
        projection = projection.astype(np.float32)
        return Distillation(
            encoder=encoder, teacher=teacher, projection=projection, settings=settings
        )
    return DualEncoder(encoder, settings)


def train(strategy, kind, clip_norm, changes):
    settings = TrainConfig(**changes)
    with strategy.scope():
        tf_keras.utils.set_random_seed(3)  # Biases of an LSTM are random.
        # Chunks, and layers computed again, give what the whole batch gives.
        rematerialize = settings.chunk_size > 0 or kind == "distill"
        compute = ComputeConfig(precision="float32", rematerialize=rematerialize)
        config = {"joint": JOINT_ENCODER, "laser": LSTM_ENCODER}.get(kind, ENCODER)
        encoder = build_encoder(config, compute=compute, replayable=rematerialize)
        fixed_weights(encoder, seed=3)
        objective = objective_of(kind, encoder, config, settings)
        # By SGD the updates are the gradients themselves; Adam would hide their scale.
        optimizer = tf_keras.optimizers.SGD(0.1)
    made = {"mlm": mlm_batches, "joint": joint_batches, "inference": inference_batches}
    made["laser"] = laser_batches
    batches = made[kind]() if kind in made else dual_batches(settings.hard_negatives)
    if kind == "distill":
        batches = [batch["source"] for batch in batches]
    facts = {}
    if kind == "dual" and strategy.num_replicas_in_sync == 1:
        for name in ("source", "target"):
            tensors = {key: tf.constant(value) for key, value in batches[0][name].items()}
            facts[name] = embed(encoder, tensors, training=False).numpy()
    # Batches of LASER have different numbers of rows.
    unknown, rows = ((*LENGTHS, BATCH), 0) if kind == "laser" else (LENGTHS, BATCH)
    trainer = Trainer(
        objective,
        strategy=strategy,
        optimizer=optimizer,
        clip_norm=clip_norm,
        dataset=distribute(strategy, lambda: dataset_of(batches, unknown), rows),
    )
    for step in range(STEPS):
        for name, value in trainer.train(tf.constant(1)).items():
            if name not in ("learning_rate", "steps_per_second"):
                facts[f"{name}_{step}"] = np.array(value)
    for index, variable in enumerate(objective.variables):
        facts[f"weight_{index:03d}_{variable.name}"] = variable.numpy()
    return facts


def refusal(strategy, batch_size):
    try:
        distribute(strategy, lambda: dataset_of(dual_batches()), batch_size)
    except InputError as error:
        return str(error)
    return ""


def main(mode, cases, out):
    if mode == "workers":
        strategy = create_strategy("multi_worker")
    elif mode == "1":
        strategy = create_strategy("one_device")
    else:
        strategy = create_strategy("mirrored", logical_cpus=int(mode))
    results = {
        "replicas": np.array(strategy.num_replicas_in_sync),
        "refusal": np.array(refusal(strategy, 7)),
    }
    for case in cases.split(","):
        for name, value in train(strategy, *CASES[case]).items():
            results[f"{case}/{name}"] = value
    np.savez(out, **{name.replace(":", "_"): value for name, value in results.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
