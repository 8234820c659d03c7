"""Text to token ids, in training data and exported models alike."""
