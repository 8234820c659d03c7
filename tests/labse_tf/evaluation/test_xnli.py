"""The task `xnli`: features by hand, transfer between languages, chance, broken files."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_encoders import Table

from labse_tf.errors import InputError
from labse_tf.evaluation.tasks import xnli
from labse_tf.evaluation.texts import InferencePairs

# The same word in each place means the same.
WORDS = {"en": "dog cat sun rain", "de": "Hund Katze Sonne Regen", "th": "หมา แมว แดด ฝน"}
LABELS = ("entailment", "neutral")


MEANINGS = {word: place for words in WORDS.values() for place, word in enumerate(words.split())}


class Dictionary:
    """Knows what each word means, in every language; numbers tell texts apart, and nothing else."""

    def encode(self, texts):
        return np.eye(4, dtype=np.float32)[[MEANINGS[text.split()[0]] for text in texts]]


def pairs(language, count, seed):
    """Entailment if both sides mean the same."""
    rng = np.random.default_rng(seed)
    words = WORDS[language].split()
    rows = []
    for number in range(count):
        one = int(rng.integers(4))
        other = one if number % 2 else (one + 1 + int(rng.integers(3))) % 4
        rows.append(f"{words[one]} {number}\t{words[other]} {seed}\t{LABELS[one != other]}\n")
    return "".join(rows)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.en.tsv").write_text(pairs("en", 200, 0), "utf-8")
    for language in WORDS:
        (folder / f"dev.{language}.tsv").write_text(pairs(language, 40, 1), "utf-8")
        (folder / f"test.{language}.tsv").write_text(pairs(language, 60, 2), "utf-8")
    return folder


def test_the_features_by_hand():
    encoder = Table({"p": [0.6, 0.8], "h": [1, 0]})
    one = InferencePairs({"en": [("p", "h")]}, ["neutral"])
    examples = xnli._examples(one, encoder.encode, "en")
    expected = [[0.6, 0.8, 1, 0, 0.6, 0, 0.4, 0.8]]
    np.testing.assert_allclose(examples.features, expected, rtol=1e-6)


def test_what_means_the_same_is_classified_the_same(data):
    record = xnli.evaluate(Dictionary(), data, seeds=2)
    for row in record["languages"].values():
        assert row["accuracy"] == {"mean": 1.0, "spread": 0.0}
    assert record["accuracy"] == 1.0 and record["majority"] == 0.5
    assert record["test"] == 60 and record["trained"] == 200
    assert record["data"]["files"] == 7


def test_training_pairs_that_are_tested_are_left_out_and_may_be_elsewhere(data, tmp_path):
    tested = "".join((data / f"{part}.en.tsv").read_text("utf-8") for part in ("dev", "test"))
    other = tmp_path / "multinli.en.tsv"
    other.write_text((data / "train.en.tsv").read_text("utf-8") + tested, "utf-8")
    (data / "train.en.tsv").unlink()
    record = xnli.evaluate(Dictionary(), data, train=str(other), seeds=1)
    assert record["trained"] == 200
    other.write_text(tested, "utf-8")
    with pytest.raises(InputError, match="fewer than two labels that are not in the dev or test"):
        xnli.evaluate(Dictionary(), data, train=str(other), seeds=1)


def test_xnlis_own_files_in_a_folder_with_brackets(data):
    folder = data.rename(data.with_name("data [1]"))
    for part in ("dev", "test"):
        lines = ["language\tgold_label\tsentence1\tsentence2\tpairID"]
        for language in WORDS:
            path = folder / f"{part}.{language}.tsv"
            for number, row in enumerate(path.read_text("utf-8").splitlines()):
                premise, hypothesis, label = row.split("\t")
                lines.append(f"{language}\t{label}\t{premise}\t{hypothesis}\t{number}")
            path.unlink()
        (folder / f"xnli.{part}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    assert xnli.evaluate(Dictionary(), folder, seeds=1)["accuracy"] == 1.0
