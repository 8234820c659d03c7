"""AdamW with linear warm-up and linear decay.

LaBSE (section 3.2) names AdamW and "linear weight decay", interpreted here as in BERT: the
learning rate decays linearly, the weight decay is constant. It does not mention warm-up.
"""

from __future__ import annotations

from official.modeling.optimization import lr_schedule

from labse_tf.config import OptimizerConfig
from labse_tf.training.optimizer.lazy_adamw import LazyAdamW

# As in BERT, layer norms and biases do not decay.
_NO_DECAY = ["layer_norm", "LayerNorm", "bias"]


def build_optimizer(config: OptimizerConfig, *, steps: int) -> LazyAdamW:
    """Returns the optimiser for a run (or stage) of `steps` steps.

    The rate rises from 0 to `config.learning_rate` over the warm-up, then falls to 0 at `steps`.
    It expects gradients already reduced over replicas and clipped. A table's update is dense if its
    gradient is: see `training.loop`.
    """
    warmup = config.warmup_of(steps)
    # Linear from the configured rate at the end of the warm-up to 0 after the last step. Without
    # the offset, the decay would begin at step 0 and the peak would be lower.
    schedule = lr_schedule.PolynomialDecayWithOffset(
        initial_learning_rate=config.learning_rate,
        decay_steps=max(1, steps - warmup),
        end_learning_rate=0.0,
        offset=warmup,
    )
    if warmup:
        schedule = lr_schedule.LinearWarmup(
            after_warmup_lr_sched=schedule, warmup_steps=warmup, warmup_learning_rate=0.0
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
