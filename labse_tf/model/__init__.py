"""The encoder, its heads, and how it grows."""
