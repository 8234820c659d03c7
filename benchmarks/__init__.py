"""Benchmarks: the measurements behind claims of speed. `make bench` runs them; none is a test."""
