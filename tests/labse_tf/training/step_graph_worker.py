"""Traces the step of several replicas with fixed shapes, as on a TPU; run by test_step_graph.py.

`step_graph_worker.py REPLICAS OUT.json` writes, of the graph of each objective's step, the types of
its operations, and the outputs whose shapes are not known, as "type name shape". The inside of
MirroredStrategy's gather is left out: its shapes may differ by replica, and TPUs have another.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import labse_tf  # noqa: F401  Before TensorFlow: it chooses Keras 2.

# isort: split
import tensorflow as tf
from replica_worker import (
    BATCH,
    ENCODER,
    JOINT_ENCODER,
    SLOTS,
    dataset_of,
    dual_batches,
    joint_batches,
    mlm_batches,
)

from labse_tf.config import OptimizerConfig, TrainConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, build_slots
from labse_tf.training.distribution import create_strategy, distribute
from labse_tf.training.fit import Trainer
from labse_tf.training.objectives import DualEncoder, Joint, MaskedTokens
from labse_tf.training.optimizer import build_optimizer

CHUNKED = TrainConfig(chunk_size=3)
MAKERS = {
    "dual": (dual_batches, TrainConfig()),
    "dual_chunked": (dual_batches, CHUNKED),
    "mlm": (mlm_batches, None),
    "mlm_sampled": (mlm_batches, None),
    "joint": (joint_batches, TrainConfig(bitext_weight=0.2)),
}


def trace(strategy, name):
    make, settings = MAKERS[name]
    with strategy.scope():
        config = JOINT_ENCODER if name == "joint" else ENCODER
        encoder = build_encoder(config, replayable=True)
        objective = DualEncoder(encoder, settings or TrainConfig())
        if settings is None or name == "joint":
            slots = build_slots(SLOTS, config) if name == "joint" else None
            samples = 30 if name == "mlm_sampled" else 0
            masked = MaskedTokens(encoder, build_mlm_head(config, encoder), slots, samples=samples)
            objective = masked if settings is None else Joint(masked, objective, weight=0.2)
        optimizer = build_optimizer(OptimizerConfig(warmup_steps=0), steps=100)
    trainer = Trainer(
        objective,
        strategy=strategy,
        optimizer=optimizer,
        clip_norm=1.0,
        lazy_embeddings=False,
        dataset=distribute(strategy, lambda: dataset_of(make()[:1], unknown=()), BATCH),
    )
    step = tf.function(trainer.train_step).get_concrete_function(iter(trainer.train_dataset))
    graphs = [step.graph]
    kinds, unknown = set(), []
    while graphs:
        graph = graphs.pop()
        for operation in graph.get_operations():
            kinds.add(operation.type)
            if _of_gather(operation):
                continue
            unknown += [
                f"{operation.type} {output.name} {output.shape}"
                for output in operation.outputs
                if not output.shape.is_fully_defined()
            ]
        graphs += [one.graph for one in graph._functions.values() if hasattr(one, "graph")]
    return {"operations": sorted(kinds), "unknown": unknown}


def _of_gather(operation):
    """Whether it is of the gather, or hands on what one returns."""
    if operation.type == "Identity":
        operation = operation.inputs[0].op
    return "allgather" in operation.name


def main(replicas, out):
    strategy = create_strategy("mirrored", logical_cpus=int(replicas))
    assert strategy.num_replicas_in_sync == int(replicas)
    Path(out).write_text(json.dumps({name: trace(strategy, name) for name in MAKERS}), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
