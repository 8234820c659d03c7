"""Commands `labse vocab ...`."""
