"""Records and their serialization in TFRecord files, without TensorFlow."""
