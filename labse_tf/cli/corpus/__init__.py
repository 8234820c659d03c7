"""Commands `labse corpus ...`."""
