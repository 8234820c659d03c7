"""The translation model that data selection scores pairs with."""
