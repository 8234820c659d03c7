"""Text to token ids, for training data and exported models."""
