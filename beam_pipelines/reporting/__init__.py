"""Counts and examples of what a job dropped: report.json and examples.md."""
