"""Runners, workers, and helpers that every pipeline needs."""
