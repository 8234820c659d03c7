"""The encoder, its heads, and progressive stacking."""
