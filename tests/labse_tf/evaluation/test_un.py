"""The task `un`: whole pools in both directions, duplicates, vectors kept on disk."""

from __future__ import annotations

import tempfile

import pytest
from hashed_encoders import HashedCharacters, Table
from text_files import write_lines

from labse_tf.evaluation.result import format_table
from labse_tf.evaluation.tasks import un
from labse_tf.evaluation.texts import AlignedFiles

VECTORS = {"Katze": [1, 0, 0], "Hund": [0, 1, 0], "Hase": [0, 0, 1]}
VECTORS |= {"cat": [1, 0, 0], "dog": [0, 0.8, 0.6], "hare": [0.6, 0.8, 0]}


@pytest.fixture
def data(tmp_path):
    (tmp_path / "UN.v1.de-en.de").write_text("Katze\nHund\nHund\nHase\n", "utf-8")
    (tmp_path / "UN.v1.de-en.en").write_text("cat\ndog\ndog\nhare\n", "utf-8")
    return tmp_path


def test_by_hand_with_duplicates(data):
    one = un.evaluate(Table(VECTORS), data)["corpora"]["UN.v1.de-en"]
    # Forward: Katze-cat; Hund has 0.8 with both dogs and hare, a tie, of which a dog has the right
    # text; Hase has 0.6 with the dogs.
    assert one["forward"] == {"p_at_1": 0.25, "same_text": 0.75}
    # Backward: cat-Katze; dogs find both Hunde; hare has 0.8 with Hund, 0.6 with Katze.
    assert one["backward"] == {"p_at_1": 0.25, "same_text": 0.75}
    assert (one["pairs"], one["distinct_sources"], one["distinct_targets"]) == (4, 3, 3)


def test_tsv_in_any_script_beside_moses(data):
    (data / "more.tsv").write_text("แมว\tcat\tthird column\nหมา\tdog\n", "utf-8")
    result = un.evaluate(Table(VECTORS | {"แมว": [1, 0, 0], "หมา": [0, 0, 1]}), data)
    assert result["corpora"]["more"]["forward"] == {"p_at_1": 1.0, "same_text": 1.0}
    assert result["p_at_1"] == pytest.approx((0.25 + 0.25 + 1 + 1) / 4)
    assert (result["data"]["files"], set(result["corpora"])) == (3, {"more", "UN.v1.de-en"})


def test_the_papers_direction_is_printed_first_and_both_are_named(tmp_path):
    """English is the second side of one corpus and no side of the other.

    From German: Katze finds cat; each Hund has 0.8 with hare and both dogs, hare comes first; Hase
    has 0.6 with the dogs, 0 with hare. So 1/4, and 1/4 by text. From English: cat finds Katze, hare
    Hund (0.8), the dogs both Hunde. So 1/4, and 3/4 by text.
    """
    (tmp_path / "x.de-en.de").write_text("Katze\nHase\nHund\nHund\n", "utf-8")
    (tmp_path / "x.de-en.en").write_text("cat\nhare\ndog\ndog\n", "utf-8")
    (tmp_path / "y.de-fr.de").write_text("Katze\n", "utf-8")
    (tmp_path / "y.de-fr.fr").write_text("cat\n", "utf-8")
    result = un.evaluate(Table(VECTORS), tmp_path)
    assert result["from_english"] == {"p_at_1": 0.25, "same_text": 0.75, "corpora": 1}
    assert format_table(un.describe(result)).splitlines()[-2:] == [
        "mean P@1, en -> xx, equal texts as one, as LaBSE's paper: 75.00 (1 of 2 corpora)",
        "mean P@1, both directions: 62.50, same text: 75.00",
    ]
    for side in ("de", "en"):
        (tmp_path / f"x.de-en.{side}").unlink()
    result = un.evaluate(Table(VECTORS), tmp_path)
    assert result["from_english"] is None
    assert "no corpus has English in its name" in format_table(un.describe(result))


def test_the_direction_from_english_by_the_name():
    pair, table = AlignedFiles("one", "other"), AlignedFiles("one", "one")
    found = [un.direction_from_english(name, pair) for name in ("v1.en-fr", "deu-eng", "x.de-fr")]
    assert found == ["forward", "backward", None]
    names = ("de", "news.sr-Latn", "de-en", "de-fr", "more")
    found = [un.direction_from_english(name, table) for name in names]
    assert found == ["forward", "forward", "backward", None, None]


class Counted(HashedCharacters):
    """Tells a hash, as a model dir does, and counts what it embeds."""

    def __init__(self, sha256, **facts):
        super().__init__(longest=1)
        self.sha256, self.more, self.seen = sha256, facts, 0

    def encode(self, texts):
        self.seen += len(texts)
        return super().encode(texts)

    def facts(self):
        return {"name": "model", "model_sha256": self.sha256, **self.more}


@pytest.mark.parametrize("work", [None, "work"])
def test_without_a_work_folder_the_disk_holds_one_corpus_at_a_time(work, data, monkeypatch):
    """`more` comes after `UN.v1.de-en`; a corpus has a file of vectors for each of 2 sides."""
    (data / "more.tsv").write_text("Maus\tmouse\n", "utf-8")
    temporary, found = data / "temporary", {}
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    class Looking(HashedCharacters):
        def encode(self, texts):
            found[texts[0]] = len(list(data.rglob("*.npy")))
            return super().encode(texts)

    un.evaluate(Looking(), data, work=work and data / work)
    kept = 2 if work else 0
    assert found == {"Katze": 0, "cat": 1, "Maus": kept, "mouse": kept + 1}
    assert not list(temporary.iterdir())


def test_vectors_of_the_same_texts_and_model_are_used_again(data, tmp_path):
    work = tmp_path / "work"
    first, again = Counted("abc"), Counted("abc")
    expected = un.evaluate(first, data, work=work)["corpora"]
    assert first.seen == 8
    assert un.evaluate(again, data, work=work)["corpora"] == expected
    assert again.seen == 0
    fewer, nobody_knows = Counted("abc", leading_columns=8), Counted(None)
    for encoder in (fewer, fewer, nobody_knows, nobody_knows):
        un.evaluate(encoder, data, work=work)
    assert (fewer.seen, nobody_knows.seen) == (8, 16)
    un.evaluate(again, data, work=work)
    (data / "UN.v1.de-en.en").write_text("cat\ndog\nhound\nhare\n", "utf-8")
    un.evaluate(again, data, work=work)
    assert again.seen == 16


def test_an_approximate_search_is_told(tmp_path):
    numbers = (index * 7919 % 100003 for index in range(300))
    write_lines(tmp_path / "n.tsv", [f"{number} Katzen\t{number} cats" for number in numbers])
    exact, found = (
        un.evaluate(HashedCharacters(), tmp_path, index=index, recall=0.9)
        for index in ("exact", "approximate")
    )
    assert exact["corpora"]["n"]["search"] == {"index": "exact"}
    assert found["corpora"]["n"]["search"]["recall_wanted"] == 0.9
    assert found["p_at_1"] == pytest.approx(exact["p_at_1"], abs=0.2)
    assert "approximate search, recall" in format_table(un.describe(found))
