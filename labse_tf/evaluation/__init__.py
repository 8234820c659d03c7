"""Tasks that score any encoder, and systems to compare with."""
