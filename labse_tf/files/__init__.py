"""Files: corpora, outputs that appear complete or not at all, work folders."""
