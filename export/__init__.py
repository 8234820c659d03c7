"""Exports a run dir to a model dir of SavedModels."""
