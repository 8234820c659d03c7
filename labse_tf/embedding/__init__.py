"""Text to vectors: encoders of any kind, behind one protocol."""
