"""From a run dir to the SavedModels of a model dir."""
