"""Counts words per language: what a vocabulary is learned from."""
