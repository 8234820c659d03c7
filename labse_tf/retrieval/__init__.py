"""Nearest neighbours, margin scores and the mining of translations, on vectors alone."""
