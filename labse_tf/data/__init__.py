"""Input pipelines: text to batches, a function of seed and step."""
