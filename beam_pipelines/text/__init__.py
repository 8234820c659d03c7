"""Properties of text: language, sentences, quality."""
