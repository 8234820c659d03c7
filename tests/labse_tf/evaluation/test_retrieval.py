"""The retrieval task, its baseline, and the encoder protocol."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import accuracies
from labse_tf.evaluation.tasks import retrieval


@pytest.mark.parametrize(
    "similarities, to_english, from_english",
    [
        ([[1.0, 0.0], [0.0, 1.0]], 1.0, 1.0),
        ([[0.0, 1.0], [1.0, 0.0]], 0.0, 0.0),
        # Both rows have the diagonal as the largest; of the columns only the first.
        ([[0.9, 0.8], [0.1, 0.2]], 1.0, 0.5),
        # A tie is not found; other rows are not hurt by it.
        ([[0.5, 0.5], [0.1, 0.6]], 0.5, 1.0),
        ([[1.0, 1.0], [1.0, 1.0]], 0.0, 0.0),
        ([[-0.5, -0.6, -0.7], [-0.9, -0.8, -0.7], [-1.0, -1.0, -0.1]], 2 / 3, 2 / 3),
        ([[0.3]], 1.0, 1.0),
    ],
)
def test_accuracies_by_hand(similarities, to_english, from_english):
    found = retrieval.accuracies(np.array(similarities))
    assert found == pytest.approx({"to_english": to_english, "from_english": from_english})


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 8), levels=st.integers(1, 4))
def test_accuracies_equal_the_definition(seed, size, levels):
    """Few levels, so that there are ties."""
    matrix = np.random.default_rng(seed).integers(0, levels, (size, size)).astype(float)
    for name, rows in (("to_english", matrix), ("from_english", matrix.T)):
        found = sum(
            all(row[index] > other for place, other in enumerate(row) if place != index)
            for index, row in enumerate(rows)
        )
        assert retrieval.accuracies(matrix)[name] == pytest.approx(found / size)


def test_tfidf_finds_copies():
    texts = ["Berlin 1989", "Wien 1815", "東京タワー", "กรุงเทพฯ", "Москва", "أبو ظبي"]
    similarities = tfidf_similarities(texts, texts)
    np.testing.assert_allclose(np.diag(similarities), 1.0, atol=1e-9)
    assert retrieval.accuracies(similarities) == {"to_english": 1.0, "from_english": 1.0}


def test_tfidf_finds_names_and_numbers():
    similarities = tfidf_similarities(
        ["Angela besuchte Lissabon 2007", "der Hund schläft", "猫が寝ている"],
        ["Angela visited Lisbon in 2007", "she wrote 3 books"],
    )
    assert similarities.shape == (3, 2)
    assert similarities[0].argmax() == 0
    # Without a letter in common there is next to nothing: words' edges alone.
    assert similarities[0, 0] > 3 * similarities[2].max()


class Dictionary:
    """A plain Python object that can encode: one axis a meaning."""

    def __init__(self, meanings):
        self._axes = {}
        for axis, words in enumerate(meanings):
            self._axes.update(dict.fromkeys(words, axis))
        self._dim = len(meanings) + 1

    def encode(self, texts):
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in enumerate(texts):
            vectors[row, self._axes.get(text, -1)] = 1.0
        return vectors


@pytest.fixture
def data(tmp_path):
    (tmp_path / "de.tsv").write_text("cat\tKatze\ndog\tHund\nhouse\tHaus\ntree\tBaum\n", "utf-8")
    pairs = "cat\tแมว\ndog\tหมา\n"
    (tmp_path / "th.tsv.gz").write_bytes(gzip.compress(pairs.encode("utf-8")))
    return tmp_path


def test_a_perfect_encoder(data):
    meanings = [
        ("cat", "Katze", "แมว"),
        ("dog", "Hund", "หมา"),
        ("house", "Haus"),
        ("tree", "Baum"),
    ]
    result = retrieval.evaluate(Dictionary(meanings), data)
    perfect = {"to_english": 1.0, "from_english": 1.0}
    assert result["average"] == {"model": perfect}
    assert result["languages"] == {
        "de": {"pairs": 4, "model": perfect},
        "th": {"pairs": 2, "model": perfect},
    }
    assert result["primary_metric"] in result
    assert (result["task"], result["max_candidates"]) == ("retrieval", 500)


def test_an_encoder_that_knows_half(data):
    """Haus and Baum are one vector with nothing English; แมว and หมา are one with cat."""
    encoder = Dictionary([("cat", "Katze", "แมว", "หมา"), ("dog", "Hund"), ("house",), ("tree",)])
    result = retrieval.evaluate(encoder, data)
    # German: Katze and Hund are found in both directions; the others match nothing: all ties at 0.
    assert result["languages"]["de"]["model"] == {"to_english": 0.5, "from_english": 0.5}
    # Thai: แมว finds cat, หมา does not find dog; cat ties between both, dog matches neither.
    assert result["languages"]["th"]["model"] == {"to_english": 0.5, "from_english": 0.0}
    assert result["average"]["model"] == {"to_english": 0.5, "from_english": 0.25}


def test_systems_see_the_same_first_pairs(data):
    seen = []

    def spy(sources, targets):
        seen.append((list(sources), list(targets)))
        return np.eye(len(sources))

    result = retrieval.evaluate_systems({"one": spy, "two": spy}, retrieval.read_pools(data, 3))
    german = (["Katze", "Hund", "Haus"], ["cat", "dog", "house"])
    thai = (["แมว", "หมา"], ["cat", "dog"])
    assert seen == [german, german, thai, thai]
    assert result["languages"]["de"]["pairs"] == 3
    assert set(result["average"]) == {"one", "two"}


def test_two_files_of_a_language_are_one_pool(data):
    """Regions of a language map to one code: no file may hide another."""
    (data / "de_AT.tsv").write_text("river\tFluss\n", "utf-8")
    encoder = Dictionary([("cat", "Katze"), ("dog", "Hund"), ("house", "Haus"), ("tree", "Baum")])
    result = retrieval.evaluate(encoder, data)
    assert result["languages"]["de"]["pairs"] == 5


@pytest.mark.parametrize(
    "name, data, problem",
    [
        (None, b"", "no such file or folder"),
        ("notes.md", b"x", "holds no bitext files"),
        ("de.tsv", b"", "the file is empty"),
        ("de.tsv", b"alone\n", "one column"),
        ("de.txt", b"Hallo\n", "holds no bitext files"),
    ],
)
def test_missing_and_broken_data(tmp_path, name, data, problem):
    folder = tmp_path / "data"
    if name:
        folder.mkdir()
        (folder / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        retrieval.read_pools(folder)
    assert problem in caught.value.problem


@pytest.mark.parametrize("most", [0, -1])
def test_no_candidates_make_no_sense(data, most):
    with pytest.raises(InputError):
        retrieval.read_pools(data, most)
