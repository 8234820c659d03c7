"""The `labse` command line: a module a command; each parses, calls and prints."""
