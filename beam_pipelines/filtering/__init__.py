"""The filter job: its steps, from records read to clean shards."""
