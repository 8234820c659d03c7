"""The run dir: configuration, checkpoints, and initial weights."""
