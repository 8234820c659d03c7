"""The task `sts`: correlations against their formulas, sets and splits, broken files."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hashed_encoders import Table
from text_files import write_lines

from labse_tf.evaluation.result import format_table
from labse_tf.evaluation.tasks import sts


def pearson(x, y):
    x, y = np.array(x) - np.mean(x), np.array(y) - np.mean(y)
    return float(np.sum(x * y) / math.sqrt(np.sum(x * x) * np.sum(y * y)))


def ranks(values):
    """The mean place of equal values, from 1."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def test_correlations_equal_their_formulas_with_ties():
    cosines, scores = [0.9, 0.5, 0.5, -0.2, 0.1], [5.0, 3.0, 4.0, 0.0, 0.0]
    found = sts.correlations(np.array(cosines), np.array(scores))
    angular = [1 - math.acos(cosine) / math.pi for cosine in cosines]
    assert found["pearson_cosine"] == pytest.approx(pearson(cosines, scores))
    assert found["pearson_angular"] == pytest.approx(pearson(angular, scores))
    assert found["spearman"] == pytest.approx(pearson(ranks(cosines), ranks(scores)))


def test_angles_of_rounding_and_no_correlation_of_what_does_not_vary():
    cosines = np.array([1.0, 1.0000001, 0.5, 0.0, -1.0])
    np.testing.assert_allclose(sts.angular_similarity(cosines), [1, 1, 2 / 3, 1 / 2, 0])
    assert all(math.isnan(value) for value in sts.correlations(np.ones(3), np.arange(3)).values())


VECTORS = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1], "d": [-1, 0], "แมว": [0.8, 0.6]}


@pytest.fixture
def data(tmp_path):
    files = {
        "set1/one.test.tsv": "5\ta\ta\n3\ta\tb\n0\ta\tc\textra\n",
        "set1/two.tsv.xz": "0.5\ta\td\n4.5\tb\tแมว\n",
        "set1/one.train.tsv": "1\ta\ta\n2\ta\tb\n",
        "set2/de.dev.txt": "1\ta\tb\n2\ta\ta\n",
        "notes.md": "no data",
    }
    for name, text in files.items():
        write_lines(tmp_path / name, text.splitlines())
    return tmp_path


def test_files_sets_and_splits(data):
    result = sts.evaluate(Table(VECTORS), data)
    set1 = result["sets"]["set1"]
    assert list(result["sets"]) == ["set1"] and list(set1["files"]) == ["one", "two"]
    one = pearson([1, 0.6, 0], [5, 3, 0])
    together = pearson([1, 0.6, 0, -1, 0.96], [5, 3, 0, 0.5, 4.5])
    assert set1["files"]["one"]["pearson_cosine"] == pytest.approx(one)
    assert set1["all"]["pearson_cosine"] == pytest.approx(together)
    assert set1["mean"]["pearson_cosine"] == pytest.approx((one + 1) / 2)
    assert (set1["pairs"], set1["files"]["two"]["pairs"]) == (5, 2)
    assert result["spearman"] == set1["all"]["spearman"]
    assert "all together" in format_table(sts.describe(result))
    for split, files in (
        ("train", {"set1": ["one", "two"]}),
        ("dev", {"set1": ["two"], "set2": ["de"]}),
    ):
        sets = sts.evaluate(Table(VECTORS), data, split=split)["sets"]
        assert {name: list(set_["files"]) for name, set_ in sets.items()} == files
