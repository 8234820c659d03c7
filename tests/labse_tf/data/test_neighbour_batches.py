"""Batches for CMLM: neighbours within a document, half of them swapped, one side masked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from labse_tf.data import streams
from labse_tf.data.cmlm import (
    neighbour_batches,
    neighbour_files,
    read_held_out_neighbours,
)
from labse_tf.errors import InputError
from labse_tf.files.textio import neighbours_and_errors, read_lines

PADDING, START, END = 0, 101, 102
# Documents of sentences in several scripts; those of one document share a number.
DOCUMENTS = {
    "de": ["Katze 1", "Hund 1", "Maus 1", "", "Haus 2", "Baum 2", "", "Mond 3"],
    "ru": ["кошка 4", "собака 4", "", "", "дом 5", "река 5", "луна 5"],
    "th": ["แมว 6", "หมา 6", "นก 6", "ม้า 6"],
}
PAIRS = {"de": 3, "ru": 3, "th": 3}


@pytest.fixture
def folder(tmp_path):
    for language, lines in DOCUMENTS.items():
        (tmp_path / f"{language}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return tmp_path


@pytest.fixture
def settings(tiny_config, folder):
    return dataclasses.replace(
        tiny_config.pretrain,
        objective="cmlm",
        neighbours=[str(folder)],
        batch_size=16,
        sequence_length=16,
        mask_fraction=0.3,
        max_predictions=4,
    )


def take(settings, tokenizer, count, **changes):
    options = {"languages": [], "seed": 3, "stage": 0, **changes}
    batches = neighbour_batches(settings, tokenizer, **options).take(count)
    return list(batches.as_numpy_iterator())


def words(ids, tokenizer):
    """The text of each row, without special tokens."""
    kept = [[tokenizer.tokens[one] for one in row if one > END] for row in ids]
    return [" ".join(row).replace(" ##", "") for row in kept]


def inner(ids):
    """The tokens of each row between [CLS] and [SEP]."""
    return [tuple(one for one in row if one not in (PADDING, START, END)) for row in ids]


def unmasked(batch):
    ids = batch["input_word_ids"].copy()
    rows, columns = np.nonzero(batch["masked_weights"])
    ids[rows, batch["masked_positions"][rows, columns]] = batch["masked_ids"][rows, columns]
    return ids


@pytest.mark.parametrize(
    "lines, pairs",
    [
        (["a", "b", "c"], [(1, "a", "b"), (2, "b", "c")]),
        (["a", "", "b", "c"], [(3, "b", "c")]),
        (["", "a", " ", "b", "", ""], []),
        ([" a ", "b\u00a0"], [(1, "a", "b")]),
    ],
)
def test_an_empty_line_is_a_break(tmp_path, lines, pairs):
    (tmp_path / "de.txt").write_text("\n".join(lines), "utf-8")
    found = neighbours_and_errors(read_lines(tmp_path / "de.txt"))
    assert [(number, *texts) for number, texts in found] == pairs


def test_no_pair_crosses_a_document_and_half_are_swapped(settings, tokenizer):
    found = []
    for batch in take(settings, tokenizer, 30):
        neighbour, masked = map(inner, (batch["neighbour"]["input_word_ids"], unmasked(batch)))
        found += zip(neighbour, masked, strict=True)
    expected = {}
    for lines in DOCUMENTS.values():
        for first, second in zip(lines, lines[1:], strict=False):
            if first and second:
                one, other = map(tuple, tokenizer([first, second]).to_list())
                expected[one, other], expected[other, one] = False, True
    assert set(found) == set(expected)
    swapped = np.mean([expected[pair] for pair in found])
    assert abs(swapped - 0.5) < 4 * 0.5 / len(found) ** 0.5


def test_the_neighbour_is_never_masked(settings, tokenizer):
    mask = tokenizer.special_tokens["mask_id"]
    for batch in take(settings, tokenizer, 10):
        assert not (batch["neighbour"]["input_word_ids"] == mask).any()
        rows, columns = np.nonzero(batch["masked_weights"])
        chosen = unmasked(batch)[rows, batch["masked_positions"][rows, columns]]
        assert len(rows) >= settings.batch_size
        assert not np.isin(chosen, [PADDING, START, END]).any()


def test_resuming_repeats_the_batches_and_stages_differ(settings, tokenizer, monkeypatch):
    whole = take(settings, tokenizer, 6)
    for skip in (1, 4):
        for found, expected in zip(
            take(settings, tokenizer, 2, step=skip), whole[skip:], strict=False
        ):
            for name in ("input_word_ids", "masked_positions", "file"):
                np.testing.assert_array_equal(found[name], expected[name])
            np.testing.assert_array_equal(
                found["neighbour"]["input_word_ids"], expected["neighbour"]["input_word_ids"]
            )
    monkeypatch.setattr(streams, "SEGMENT", 4)
    second, later = (take(settings, tokenizer, 3, step=step) for step in (4, 5))
    np.testing.assert_array_equal(later[0]["input_word_ids"], second[1]["input_word_ids"])
    assert (second[0]["input_word_ids"] != whole[0]["input_word_ids"]).any()
    other = take(settings, tokenizer, 1, stage=1)[0]["input_word_ids"]
    assert (other != whole[0]["input_word_ids"]).any()


def test_languages_and_files(settings, tokenizer, folder):
    files = neighbour_files(settings, ["ru", "th"])
    assert [file.path for file in files] == [str(folder / "ru.txt"), str(folder / "th.txt")]
    batch = take(settings, tokenizer, 1, languages=["ru", "th"])[0]
    for text, file in zip(words(unmasked(batch), tokenizer), batch["file"], strict=True):
        assert ("ก" in text or "ม" in text or "ห" in text) == (file == 1)


def test_held_out_pairs_with_true_and_with_other_neighbours(settings, tokenizer, folder):
    settings = dataclasses.replace(settings, held_out=[str(folder)], held_out_size=3)
    found = read_held_out_neighbours(settings, tokenizer, [])
    true, shuffled = found["cmlm"], found["cmlm_shuffled"]
    assert list(true.languages) == sorted(lang for lang, n in PAIRS.items() for _ in range(n))
    for name in ("input_word_ids", "masked_positions", "masked_ids", "masked_weights"):
        np.testing.assert_array_equal(true.rows[name], shuffled.rows[name])
    ids, others = (one.rows["neighbour"]["input_word_ids"] for one in (true, shuffled))
    for start in (0, 3, 6):
        np.testing.assert_array_equal(others[start : start + 3], ids[[start + 2, start, start + 1]])
    batches = list(true.batches(vocab_size=100))
    sizes = {len(batch["neighbour"]["input_word_ids"]) for batch in batches}
    assert sizes == {256} and len(batches) == 1


def test_other_neighbours_are_not_from_nearby(settings, tokenizer, tmp_path):
    path = tmp_path / "one" / "de.txt"
    path.parent.mkdir()
    path.write_text("\n".join(["Katze", "Hund", "Maus"] * 3) + "\n", "utf-8")
    settings = dataclasses.replace(settings, held_out=[str(path)], held_out_size=8)
    found = read_held_out_neighbours(settings, tokenizer, [])
    ids, others = (
        found[name].rows["neighbour"]["input_word_ids"] for name in ("cmlm", "cmlm_shuffled")
    )
    np.testing.assert_array_equal(others, ids[[4, 5, 6, 7, 0, 1, 2, 3]])


def test_held_out_text_with_one_pair_is_refused(settings, tokenizer, tmp_path):
    path = tmp_path / "one" / "de.txt"
    path.parent.mkdir()
    path.write_text("Katze\nHund\n", "utf-8")
    settings = dataclasses.replace(settings, held_out=[str(path)])
    with pytest.raises(InputError, match="only one pair"):
        read_held_out_neighbours(settings, tokenizer, [])
