"""Training loops, optimiser, checkpoints, run dirs."""
