"""The heuristics of C4 for web pages (Raffel et al. 2020, section 2.2)."""
