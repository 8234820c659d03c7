"""Runners, workers, and what every pipeline needs of them."""
