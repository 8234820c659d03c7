"""Validation during training: when, on what, and the best checkpoint."""
