"""An LSTM in NumPy, from its equations."""

from __future__ import annotations

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(products, recurrent, state=None):
    """`[length, 4 units]`, the kernel's products and the bias -> `[length, units]`.

    Gates are in the order input, forget, cell, output. `state` is (h, c), 0 by default.
    """
    units = recurrent.shape[0]
    hidden, cell = (np.zeros(units), np.zeros(units)) if state is None else state
    outputs = []
    for product in products:
        i, f, g, o = np.split(product + hidden @ recurrent, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    return np.array(outputs)
