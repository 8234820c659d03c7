"""AdamW with lazy embedding updates, its schedule, and the gradient cache."""
