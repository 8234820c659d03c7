"""WordPiece vocabularies: word splitting, smoothing, learning, and the vocabulary file."""
