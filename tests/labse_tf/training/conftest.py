"""Fixtures that tests of training share."""

from __future__ import annotations

import pytest
import tensorflow as tf


@pytest.fixture
def eagerly():
    """Functions are not traced, where the graph is not what is tested."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
