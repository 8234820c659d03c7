"""Tasks that evaluate any encoder, and baselines to compare with."""
