"""Validation during training: when, on which data, and the best checkpoint."""
