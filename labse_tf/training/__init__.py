"""Training loops, optimiser, checkpoints and run dirs."""
