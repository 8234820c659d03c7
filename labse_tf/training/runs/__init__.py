"""The run dir: configuration, checkpoints, and the weights a run starts from."""
