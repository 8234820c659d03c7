"""Nearest neighbours, margin scores and mining of translations, from vectors alone."""
