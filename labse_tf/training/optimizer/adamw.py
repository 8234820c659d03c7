"""The optimiser of every run: AdamW with linear warm-up and linear decay.

LaBSE (section 3.2) names AdamW and "linear weight decay", interpreted here as in BERT: the
learning rate decays linearly, the weight decay is constant. It does not mention warm-up.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import tensorflow as tf
from official.modeling.optimization import lr_schedule

from labse_tf.config import ADAGRAD, CONSTANT, OptimizerConfig
from labse_tf.training.optimizer.adagrad_tables import AdagradTables
from labse_tf.training.optimizer.lazy_adamw import LazyAdamW

# As in BERT, layer norms and biases do not decay.
_NO_DECAY = ["layer_norm", "LayerNorm", "bias"]
_LAYER = re.compile(r"transformer/layer_(\d+)/")


def build_optimizer(config: OptimizerConfig, *, steps: int, layers: int = 0) -> LazyAdamW:
    """Returns the optimiser for a run (or stage) of `steps` steps.

    The rate rises from 0 to `config.learning_rate` over the warm-up, then falls to 0 at `steps`,
    unless `config.decay` is constant.
    It expects gradients already reduced over replicas and clipped. A table's update is dense if its
    gradient is: see `training.loop`.

    Args:
      config: its settings.
      steps: of the run or stage.
      layers: the number of the encoder's layers, for `config.depth_rate`.
    """
    warmup = config.warmup_of(steps)
    # Linear from the configured rate at the end of the warm-up to 0 after the last step. Without
    # the offset, the decay would begin at step 0 and the peak would be lower.
    schedule = lr_schedule.PolynomialDecayWithOffset(
        initial_learning_rate=config.learning_rate,
        decay_steps=max(1, steps - warmup),
        end_learning_rate=config.learning_rate if config.decay == CONSTANT else 0.0,
        offset=warmup,
    )
    if warmup:
        schedule = lr_schedule.LinearWarmup(
            after_warmup_lr_sched=schedule, warmup_steps=warmup, warmup_learning_rate=0.0
        )
    optimizer = (AdagradTables if config.table_update == ADAGRAD else LazyAdamW)(
        schedule,
        steps=max(1, steps),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=1e-6,
        factor_of=functools.partial(rate_factor, config, layers=layers),
    )
    optimizer.exclude_from_weight_decay(var_names=_NO_DECAY)
    return optimizer


def rate_factor(config: OptimizerConfig, name: str, *, layers: int) -> float:
    """Returns what multiplies the learning rate of the variable `name`.

    Args:
      config: `table_rate`, `layer_rate`, `pooler_rate` and `depth_rate` are read.
      name: as Keras gives it, such as `encoder/transformer/layer_3/output/kernel:0`.
      layers: of the encoder; the last one has no `depth_rate`.
    """
    if "word_embeddings" in name:
        return config.table_rate
    if "pooler" in name:
        return config.pooler_rate
    depth = _LAYER.search(name)
    above = layers - 1 - int(depth[1]) if depth and layers else 0
    return config.layer_rate * config.depth_rate**above


def count_layers(variables: Iterable[tf.Variable]) -> int:
    """Returns the number of Transformer layers that these variables belong to."""
    numbers = [int(found[1]) for one in variables if (found := _LAYER.search(one.name))]
    return max(numbers, default=-1) + 1
