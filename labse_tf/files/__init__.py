"""Files in and out: corpora, outputs that appear whole, working folders."""
