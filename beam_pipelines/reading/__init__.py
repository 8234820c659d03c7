"""Reads corpus files into batches of records: one file per format."""
