"""One tiny run of contrastive data selection, and what scores by it."""

from __future__ import annotations

import pytest
from tiny_cds import cds_config, cds_run, train_cds  # noqa: F401


@pytest.fixture(scope="session")
def scorer(cds_run):  # noqa: F811
    from labse_tf.systems.cds.scorer import TranslatorScorer

    return TranslatorScorer(cds_run)
