"""WordPiece vocabularies: word splitting, smoothing, learner, file format, pieces, coverage."""
