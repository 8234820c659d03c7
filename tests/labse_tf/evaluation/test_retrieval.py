"""The retrieval task, its baseline, and the encoder protocol."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hashed_encoders import Table

from labse_tf.evaluation.bitext import accuracies
from labse_tf.evaluation.tasks import retrieval


def test_tfidf_finds_copies_and_names():
    texts = ["Berlin 1989", "Wien 1815", "東京タワー", "กรุงเทพฯ", "Москва", "أبو ظبي"]
    similarities = retrieval.tfidf_similarities(texts, texts)
    np.testing.assert_allclose(np.diag(similarities), 1.0, atol=1e-9)
    assert accuracies(similarities) == {"to_english": 1.0, "from_english": 1.0}
    similarities = retrieval.tfidf_similarities(
        ["Angela besuchte Lissabon 2007", "der Hund schläft", "猫が寝ている"],
        ["Angela visited Lisbon in 2007", "she wrote 3 books"],
    )
    assert similarities.shape == (3, 2) and similarities[0].argmax() == 0
    # Without a letter in common there is next to nothing: words' edges alone.
    assert similarities[0, 0] > 3 * similarities[2].max()


def dictionary(*meanings):
    """One axis a meaning."""
    axes = np.eye(len(meanings) + 1)
    unknown = ["Haus", "Baum", "Fluss", "river", "house", "tree", "หมา", "dog"]
    known = {word: axes[axis] for axis, some in enumerate(meanings) for word in some.split()}
    return Table(dict.fromkeys(unknown, axes[-1]) | known)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "de.tsv").write_text("cat\tKatze\ndog\tHund\nhouse\tHaus\ntree\tBaum\n", "utf-8")
    pairs = "cat\tแมว\ndog\tหมา\n"
    (tmp_path / "th.tsv.gz").write_bytes(gzip.compress(pairs.encode("utf-8")))
    return tmp_path


def test_an_encoder_that_knows_half(data):
    """Haus and Baum are one vector with nothing English; แมว and หมา are one with cat."""
    result = retrieval.evaluate(dictionary("cat Katze แมว หมา", "dog Hund", "house", "tree"), data)
    # German: Katze and Hund are found in both directions; the others match nothing: all ties at 0.
    assert result["languages"]["de"]["model"] == {"to_english": 0.5, "from_english": 0.5}
    # Thai: แมว finds cat, หมา does not find dog; cat ties between both, dog matches neither.
    assert result["languages"]["th"]["model"] == {"to_english": 0.5, "from_english": 0.0}
    assert result["average"]["model"] == {"to_english": 0.5, "from_english": 0.25}


def test_systems_see_the_same_first_pairs_of_all_files_of_a_language(data, monkeypatch):
    """Regions of a language map to one code: no file may hide another."""
    seen = []

    def spy(sources, targets):
        seen.append((list(sources), list(targets)))
        return np.eye(len(sources))

    (data / "de_AT.tsv").write_text("river\tFluss\n", "utf-8")
    monkeypatch.setattr(retrieval, "tfidf_similarities", spy)
    encoder = dictionary("cat Katze แมว", "dog Hund", "house Haus", "tree Baum")
    result = retrieval.evaluate(encoder, data, baseline="tfidf", max_candidates=5)
    german = (["Katze", "Hund", "Haus", "Baum", "Fluss"], ["cat", "dog", "house", "tree", "river"])
    assert seen == [german, (["แมว", "หมา"], ["cat", "dog"])]
    assert result["languages"]["de"]["pairs"] == 5
    assert set(result["average"]) == {"model", "tfidf"}
