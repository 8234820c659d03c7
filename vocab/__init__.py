"""WordPiece vocabularies: word splitting, smoothing, learning, the file, splitting, coverage."""
