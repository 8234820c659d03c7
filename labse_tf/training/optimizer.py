"""AdamW with linear warm-up and linear decay (LaBSE, section 3.4)."""

from __future__ import annotations

import tf_keras
from official.modeling.optimization import lr_schedule

from labse_tf.config import OptimizerConfig
from labse_tf.training.lazy_adamw import LazyAdamW

# As BERT: layer norms and biases do not decay.
_NO_DECAY = ["layer_norm", "LayerNorm", "bias"]


def build_optimizer(config: OptimizerConfig, *, steps: int) -> LazyAdamW:
    """Returns the optimiser for a run (or stage) of `steps` steps.

    Gradients come to it reduced over replicas and clipped, and decide whether a table's update is
    dense: see `training.loop`.
    """
    schedule = tf_keras.optimizers.schedules.PolynomialDecay(
        config.learning_rate, decay_steps=max(1, steps), end_learning_rate=0.0
    )
    if config.warmup_steps:
        schedule = lr_schedule.LinearWarmup(
            after_warmup_lr_sched=schedule,
            warmup_steps=min(config.warmup_steps, max(1, steps)),
            warmup_learning_rate=0.0,
        )
    optimizer = LazyAdamW(
        schedule,
        steps=max(1, steps),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=1e-6,
    )
    optimizer.exclude_from_weight_decay(var_names=_NO_DECAY)
    return optimizer
