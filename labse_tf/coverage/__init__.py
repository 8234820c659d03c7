"""How well a vocabulary covers each language: table and plot."""
