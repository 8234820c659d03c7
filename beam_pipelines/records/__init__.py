"""Records, and their form in TFRecord files, without TensorFlow."""
