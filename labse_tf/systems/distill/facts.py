"""Facts about a run for model.json."""

from __future__ import annotations

from typing import Any

from labse_tf.systems.distill.config import DistillRun
from labse_tf.training.runs.run_dir import RunDir, base_names


def describe(run_dir: RunDir, checkpoint: str) -> dict[str, Any] | None:
    """Returns facts about a run for model.json; None if it had no teacher."""
    config = run_dir.read_config(DistillRun)
    if not config.distill.teacher:
        return None
    dims = config.train.dims(config.encoder.hidden_size)
    return {
        "kind": "distillation",
        "teacher": base_names([config.distill.teacher])[0],
        "monolingual": base_names(config.distill.monolingual),
        "bitext": base_names(config.train.bitext),
        "batch_size": config.train.batch_size,
        **({"matryoshka": dims} if len(dims) > 1 else {}),
    }
