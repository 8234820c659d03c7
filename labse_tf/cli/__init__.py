"""The `labse` command line: one module per command, which parses, calls and prints."""
