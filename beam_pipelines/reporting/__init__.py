"""Counts and examples of the records that a job dropped: report.json and examples.md."""
