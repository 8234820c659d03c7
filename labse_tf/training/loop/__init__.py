"""The training loop: trainer, resumption, metrics."""
