"""Systems that stand on the core: each folder is one, found by `labse_tf.registry`."""
