"""The translation model with which data selection scores pairs."""
