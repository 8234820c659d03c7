"""What a configuration needs: memory by part, operations, and time, from arithmetic alone."""
