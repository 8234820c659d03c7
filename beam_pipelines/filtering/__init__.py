"""The steps of the filter job, from records read to clean shards."""
