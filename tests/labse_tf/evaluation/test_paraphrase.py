"""The task `paraphrase`: threshold and average precision by hand, files, broken ones."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_encoders import HashedCharacters, Table
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.evaluation.tasks import paraphrase

# A pair "x", "<cosine>" has that cosine.
COSINES = {"0.9": 0.9, "0.8": 0.8, "0.7": 0.7, "0.5": 0.5, "0.2": 0.2}
ENCODER = Table({"x": [1.0, 0.0]} | {text: [c, (1 - c * c) ** 0.5] for text, c in COSINES.items()})


def rows(*pairs):
    return "".join(f"x\t{cosine}\t{label}\n" for cosine, label in pairs)


def test_average_precision_and_the_threshold_of_dev_by_hand(tmp_path):
    dev = rows(("0.9", 1), ("0.7", 1), ("0.5", 0), ("0.2", 0))
    (tmp_path / "dev.en.tsv").write_text(dev, "utf-8")
    (tmp_path / "test.en.tsv").write_text(dev, "utf-8")
    # Right above 0.7: all but the pair at 0.8; at ranks 1 and 3 of the five.
    test = rows(("0.9", 1), ("0.8", 0), ("0.7", 1), ("0.5", 0), ("0.2", 0), ("0.2", "-"))
    (tmp_path / "test.ru.tsv").write_text(test, "utf-8")
    record = paraphrase.evaluate(ENCODER, tmp_path)
    assert record["threshold"] == pytest.approx(0.7)
    russian = record["languages"]["ru"]
    assert russian["average_precision"] == pytest.approx((1 + 2 / 3) / 2)
    assert russian["accuracy"] == pytest.approx(4 / 5)
    assert russian["majority"] == pytest.approx(3 / 5) and russian["test"] == 5
    assert record["average_precision"] == pytest.approx((1 + (1 + 2 / 3) / 2) / 2)
    assert record["accuracy"] == pytest.approx(0.9)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_no_threshold_is_better_than_the_best(pairs):
    cosines = np.array([cosine / 4 for cosine, _ in pairs])
    labels = np.array([label for _, label in pairs])

    def accuracy(threshold):
        return np.mean((cosines >= threshold) == labels)

    best = paraphrase.best_threshold(cosines, labels)
    assert accuracy(best) == max(accuracy(one) for one in (*cosines, 2.0))


def test_paws_xs_own_files(tmp_path):
    header = "id\tsentence1\tsentence2\tlabel\n"
    for language in ("en", "th"):
        for part in ("dev", "test"):
            path = tmp_path / language / f"{part}_2k.tsv"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{header}1\tแมว a\tแมว a\t1\n2\tหมา b\tcd\t0\n", "utf-8")
    record = paraphrase.evaluate(HashedCharacters(), tmp_path)
    assert set(record["languages"]) == {"en", "th"} and record["accuracy"] == 1.0
    assert record["data"]["files"] == 3
