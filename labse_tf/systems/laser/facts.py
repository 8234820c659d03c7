"""Facts about a run for model.json."""

from __future__ import annotations

from typing import Any

from labse_tf.systems.laser.config import LaserRun
from labse_tf.training.runs.checkpoints import has_part
from labse_tf.training.runs.run_dir import RunDir, base_names


def describe(run_dir: RunDir, checkpoint: str) -> dict[str, Any] | None:
    """Returns facts about a run for model.json; None if it has no decoder."""
    if not has_part(checkpoint, "decoder"):
        return None
    settings = run_dir.read_config(LaserRun).laser
    return {
        "kind": "translation",
        "targets": settings.targets,
        "bitext": base_names(settings.corpora),
        "batch_size": settings.batch_tokens,
    }
