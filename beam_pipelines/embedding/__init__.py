"""Embeds sentences in batches and writes their vectors in shards."""
