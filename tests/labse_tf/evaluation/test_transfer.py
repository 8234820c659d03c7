"""What the transfer tasks have in common."""

from __future__ import annotations

import pytest

from labse_tf.evaluation.transfer import mean_of_targets

# Accuracies, %, of Artetxe and Schwenk 2019 (arXiv 1812.10464), sections 4.1 and 4.2; below, the
# means that its ablation gives for the same system.
XNLI = {
    "en": 73.9, "fr": 71.9, "es": 72.9, "de": 72.6, "el": 72.8, "bg": 74.2, "ru": 72.1, "tr": 69.7,
    "ar": 71.4, "vi": 72.0, "th": 69.2, "zh": 71.4, "hi": 65.5, "sw": 62.2, "ur": 61.0,
}  # fmt: skip
MLDOC = {
    "en": 89.93, "de": 84.78, "es": 77.33, "fr": 77.95, "it": 69.43, "ja": 60.30, "ru": 67.78,
    "zh": 71.93,
}  # fmt: skip


@pytest.mark.parametrize(("published", "mean"), [(XNLI, 69.92), (MLDOC, 72.79)])
def test_the_mean_leaves_the_language_of_training_out(published, mean):
    languages = {code: {"accuracy": {"mean": value}} for code, value in published.items()}
    assert mean_of_targets(languages, "en", "accuracy") == pytest.approx(mean, abs=0.005)


def test_a_language_alone_is_its_own_mean():
    assert mean_of_targets({"en": {"accuracy": {"mean": 0.5}}}, "en", "accuracy") == 0.5
