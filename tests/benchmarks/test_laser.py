"""How much of the batches of LASER's benchmark is padding."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.laser import padding


@pytest.mark.parametrize(
    ("lengths", "share"),
    [
        ([8, 8, 16, 16], 16 / 64),  # One batch: 4 rows of 16 places.
        ([16] * 5, 0.0),
        ([3], 5 / 8),  # Lengths are rounded up to multiples of 8.
        ([600], 0.0),  # Cut to 512.
        # Batches of 2,048 places: the short ones have one of their own.
        ([512] * 4 + [8] * 2, 0.0),
    ],
)
def test_padding_by_hand(lengths, share):
    assert padding(np.array(lengths)) == pytest.approx(share)
