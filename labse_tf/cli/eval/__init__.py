"""Commands `labse eval ...`."""
