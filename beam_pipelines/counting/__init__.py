"""Word counts per language, from which a vocabulary is learned."""
