"""The demo: every stage on the demo corpus, and its report."""
