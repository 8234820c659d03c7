"""The task `un`: whole pools in both directions, duplicates, vectors kept on disk."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_encoders import HashedCharacters, Table

from labse_tf.errors import InputError
from labse_tf.evaluation import un, vector_files

VECTORS = {
    "Katze": [1, 0, 0],
    "Hund": [0, 1, 0],
    "Hase": [0, 0, 1],
    "cat": [1, 0, 0],
    "dog": [0, 0.8, 0.6],
    "hare": [0.6, 0.8, 0],
}


@pytest.fixture
def data(tmp_path):
    (tmp_path / "UN.v1.de-en.de").write_text("Katze\nHund\nHund\nHase\n", "utf-8")
    (tmp_path / "UN.v1.de-en.en").write_text("cat\ndog\ndog\nhare\n", "utf-8")
    return tmp_path


def test_by_hand_with_duplicates(data):
    one = un.evaluate(Table(VECTORS), data)["corpora"]["UN.v1.de-en"]
    # Forward: Katze-cat; Hund has 0.8 with both dogs and hare, the first dog counts; Hase has 0.6
    # with the dogs. The second Hund finds the right text at the wrong place.
    assert one["forward"] == {"p_at_1": 0.5, "same_text": 0.75}
    # Backward: cat-Katze; dogs find the first Hund; hare has 0.8 with Hund, 0.6 with Katze.
    assert one["backward"] == {"p_at_1": 0.5, "same_text": 0.75}
    assert (one["pairs"], one["distinct_sources"], one["distinct_targets"]) == (4, 3, 3)


def test_tsv_in_any_script_beside_moses(data):
    (data / "more.tsv").write_text("แมว\tcat\tthird column\nหมา\tdog\n", "utf-8")
    result = un.evaluate(Table(VECTORS | {"แมว": [1, 0, 0], "หมา": [0, 0, 1]}), data)
    assert result["corpora"]["more"]["forward"] == {"p_at_1": 1.0, "same_text": 1.0}
    assert result["p_at_1"] == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    assert (result["data"]["files"], set(result["corpora"])) == (3, {"more", "UN.v1.de-en"})
    assert "UN.v1.de-en" in un.format_table(result)


class Counted(HashedCharacters):
    """Tells a hash, as a model dir does, and counts what it embeds."""

    def __init__(self, sha256):
        super().__init__()
        self.sha256, self.seen = sha256, 0

    def encode(self, texts):
        self.seen += len(texts)
        return super().encode(texts)

    def facts(self):
        return {"name": "model", "model_sha256": self.sha256}


def test_vectors_of_the_same_texts_and_model_are_used_again(data, tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "TEXTS_A_SHARD", 3)
    work = tmp_path / "work"
    first = Counted("abc")
    expected = un.evaluate(first, data, work=work)["corpora"]
    assert first.seen == 8
    shards = sorted(path.name for path in (work / "UN.v1.de-en/sources").glob("*.npy"))
    assert shards == ["part-00000-of-00002.npy", "part-00001-of-00002.npy"]
    # As if it had been stopped: only what is missing is embedded.
    (work / "UN.v1.de-en/targets/part-00001-of-00002.npy").unlink()
    again = Counted("abc")
    assert un.evaluate(again, data, work=work)["corpora"] == expected
    assert again.seen == 1
    other_model, nobody_knows = Counted("def"), Counted(None)
    for encoder in (other_model, nobody_knows, nobody_knows):
        un.evaluate(encoder, data, work=work)
    assert (other_model.seen, nobody_knows.seen) == (8, 16)
    (data / "UN.v1.de-en.en").write_text("cat\ndog\nhound\nhare\n", "utf-8")
    changed = Counted(None)
    un.evaluate(changed, data, work=work)
    assert changed.seen == 8


def test_many_blocks_equal_one_product(tmp_path):
    """More sentences than the search takes at a time, in either direction."""
    count, texts = 5000, HashedCharacters(dim=48, longest=2)
    lines = [f"{index * 7919 % 10007} in words {index}" for index in range(count)]
    others = [f"{index * 7919 % 10007} mit Worten {index}" for index in range(count)]
    (tmp_path / "n.tsv").write_text(
        "".join(f"{one}\t{other}\n" for one, other in zip(lines, others, strict=True))
    )
    result = un.evaluate(texts, tmp_path)["corpora"]["n"]
    products = texts.encode(lines) @ texts.encode(others).T
    for direction, matrix in (("forward", products), ("backward", products.T)):
        expected = np.mean(matrix.argmax(axis=1) == np.arange(count))
        assert result[direction]["p_at_1"] == pytest.approx(expected, abs=2 / count)


@pytest.mark.parametrize(
    "name, text, place, problem",
    [
        ("x.de-en.en", "cat\n", "x.de-en.en:1", "has more"),
        ("x.de-en.en", "cat\n\n", "x.de-en.en:2", "empty"),
        ("x.de-en.en", "cat\ndo\0g\n", "x.de-en.en:2", "NUL"),
        ("y.tsv", "one\n", "y.tsv:1", "one column"),
        ("z.de-en.en", "cat\n", "", "holds no z.de-en.de"),
    ],
)
def test_broken_data(tmp_path, name, text, place, problem):
    (tmp_path / "x.de-en.de").write_text("Katze\nHund\n")
    (tmp_path / "x.de-en.en").write_text("cat\ndog\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        un.evaluate(HashedCharacters(), tmp_path)
    assert place in str(caught.value) and problem in str(caught.value)


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="no aligned corpus"):
        un.evaluate(HashedCharacters(), tmp_path)
