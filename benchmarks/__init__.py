"""Benchmarks: what each claim of speed rests on. `make bench` runs them; none is a test."""
