"""Input pipelines from text to batches; each batch is a function of seed and step."""
