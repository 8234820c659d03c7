"""Held-out examples: what is asked, and that runs tell it by language. Dev pairs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from runs import labse_run, lines
from text_files import write_lines
from tiny_text import FOREIGN, sentences_of

from labse_tf.config import TrainConfig
from labse_tf.data.held_out import distinct, read_dev_pairs, read_held_out
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head
from labse_tf.training.validation import HeldOutEvaluator

START, END = 101, 102


@pytest.fixture(scope="module")
def read(tiny_config, tokenizer):
    def read(*held_out, languages=(), **changes):
        changes = {"sequence_length": 48, "held_out": [str(path) for path in held_out], **changes}
        settings = dataclasses.replace(tiny_config.pretrain, **changes)
        return read_held_out(settings, tokenizer, languages)

    return read


@pytest.fixture(scope="module")
def examples(read, bitext_dir):
    return read(bitext_dir, languages=["de", "th"], held_out_size=9)


def restored_row(examples, index):
    """The row's ids with the hidden tokens put back where they are asked for."""
    row = {name: values[index] for name, values in examples.rows.items()}
    ids = row["input_word_ids"].copy()
    chosen = row["masked_weights"] == 1.0
    assert chosen.any() and (row["masked_positions"][~chosen] == 0).all()
    ids[row["masked_positions"][chosen]] = row["masked_ids"][chosen]
    return list(ids[row["input_mask"] == 1])


def test_both_tasks_ask_for_the_same_tokens_of_the_foreign_side(examples, tokenizer):
    mlm, tlm = examples["mlm"], examples["tlm"]
    for name in ("masked_ids", "masked_weights"):
        np.testing.assert_array_equal(mlm.rows[name], tlm.rows[name])
    assert list(mlm.languages) == list(tlm.languages) == ["de"] * 9 + ["th"] * 9
    ids = {
        side: tokenizer(tf.constant(sentences_of(side))).to_list() for side in ("en", "de", "th")
    }
    for index, language in enumerate(mlm.languages):
        english, foreign = (ids[side][index % 9] for side in ("en", language))
        assert restored_row(mlm, index) == [START, *foreign, END]
        assert restored_row(tlm, index) == [START, *english, END, *foreign, END]
        types = tlm.rows["input_type_ids"][index][tlm.rows["input_mask"][index] == 1]
        assert list(types) == [0] * (len(english) + 2) + [1] * (len(foreign) + 1)


def test_sentences_alone_are_asked_of_mlm(read, monolingual_dir, tmp_path):
    examples = read(monolingual_dir, languages=["th", "en"])
    assert set(examples) == {"mlm"} and set(examples["mlm"].languages) == {"th", "en"}
    for part, rows in enumerate((4, 3)):
        (tmp_path / f"part{part}").mkdir()
        write_lines(tmp_path / f"part{part}" / "de.txt", sentences_of("de")[10 * part :][:rows])
    found = read(tmp_path / "part0", tmp_path / "part1", held_out_size=6)
    assert list(found["mlm"].languages) == ["de"] * 6  # Of both files together.
    # Too long sentences are left out.
    path = write_lines(tmp_path / "de.txt", ["Hund und Katze. " * 40, "Hund."])
    assert len(read(path)["mlm"].languages) == 1
    write_lines(path, ["Hund und Katze. " * 40])
    with pytest.raises(InputError, match="no sentence that fits"):
        read(path)


def test_neighbours_of_their_own_and_of_other_sentences(read, tmp_path):
    """The others are not from nearby, and of the same language."""
    for name, words in (("de", ["Katze", "Hund", "Maus"] * 3), ("fr", ["chat", "chien", "souris"])):
        path = write_lines(tmp_path / f"{name}.txt", words)
    found = read(tmp_path, objective="cmlm", held_out_size=8)
    true, shuffled = found["cmlm"], found["cmlm_shuffled"]
    assert list(true.languages) == ["de"] * 8 + ["fr"] * 2
    for name in ("input_word_ids", "masked_positions", "masked_ids", "masked_weights"):
        np.testing.assert_array_equal(true.rows[name], shuffled.rows[name])
    ids, others = (one.rows["neighbour"]["input_word_ids"] for one in (true, shuffled))
    np.testing.assert_array_equal(others, ids[[4, 5, 6, 7, 0, 1, 2, 3, 9, 8]])
    [batch] = true.batches(vocab_size=100)
    assert len(batch["neighbour"]["input_word_ids"]) == 256
    write_lines(path, ["chat", "chien"])
    with pytest.raises(InputError, match="only one pair of neighbours in 'fr'"):
        read(tmp_path, objective="cmlm")


def test_means_by_language_equal_numpy(tiny_config, examples):
    encoder = build_encoder(tiny_config.encoder)
    head = build_mlm_head(tiny_config.encoder, encoder)
    strategy = tf.distribute.get_strategy()
    evaluator = HeldOutEvaluator(strategy=strategy, encoder=encoder, head=head, examples=examples)
    measured = evaluator.evaluate(tf.constant(1))
    for task, (languages, rows) in examples.items():
        inputs = {name: tf.constant(rows[name]) for name in encoder.inputs}
        logits = head(encoder(inputs)["sequence_output"], tf.constant(rows["masked_positions"]))
        logits = logits.numpy().astype(np.float64)
        of_label = np.take_along_axis(logits, rows["masked_ids"][..., None], axis=2)[..., 0]
        losses = np.log(np.exp(logits).sum(axis=2)) - of_label
        hits = logits.argmax(axis=2) == rows["masked_ids"]
        for language, chosen in [("de", languages == "de"), (None, slice(None))]:
            found = measured[task]["by_language"][language] if language else measured[task]
            weights = rows["masked_weights"][chosen]
            assert found["tokens"] == weights.sum()
            for name, values in (("loss", losses), ("accuracy", hits)):
                expected = (values[chosen] * weights).sum() / weights.sum()
                assert found[name] == pytest.approx(expected, rel=1e-5)


def test_batches_have_one_shape_and_lose_no_row(examples):
    predictions = examples["mlm"].rows["masked_ids"].shape[1]
    # 2**28 bytes of logits: 4 rows a batch.
    batches = list(examples["mlm"].batches(2**28 // (4 * predictions * 4)))
    assert {batch["masked_ids"].shape for batch in batches} == {(4, predictions)}
    weights = np.concatenate([batch["masked_weights"] for batch in batches])
    np.testing.assert_array_equal(weights[:18], examples["mlm"].rows["masked_weights"])
    assert not weights[18:].any()


@pytest.mark.slow
def test_a_run_tells_it(tmp_path, config_file, bitext_dir):
    sets = ["pretrain.stage_steps=[5,2]", "pretrain.sequence_length=48", "languages=[de,th]"]
    sets += [f"pretrain.held_out=[{bitext_dir}]", "pretrain.held_out_interval=2"]
    assert labse_run("pretrain", config_file, tmp_path / "run", *sets) == 0
    told = lines(tmp_path / "run", "held_out")
    assert [(line["stage"], line["step"]) for line in told] == [(0, 2), (0, 4), (0, 5), (1, 2)]
    assert all(set(line["held_out"]) == {"mlm", "tlm"} for line in told)
    assert list((tmp_path / "run/tensorboard/stage_1/held_out").rglob("events*"))


# Dev pairs: which a pool takes, and that none of them is impossible to find.


def pools_of(*folders, languages=(), size=500):
    settings = TrainConfig(dev=[str(path) for path in folders], dev_size=size)
    return read_dev_pairs(settings, languages)


def write_pairs(folder, language, *pairs):
    folder.mkdir(exist_ok=True)
    write_lines(folder / f"{language}.tsv", ["\t".join(pair) for pair in pairs])


def test_the_first_pairs_of_each_language(bitext_dir):
    pools = pools_of(bitext_dir, size=9)
    assert list(pools) == sorted(FOREIGN)
    for language, pool in pools.items():
        expected = zip(sentences_of("en")[:9], sentences_of(language)[:9], strict=True)
        assert [tuple(side.decode() for side in pair) for pair in pool] == list(expected)
    assert list(pools_of(bitext_dir, languages=["th", "ja", "en"])) == ["ja", "th"]
    with pytest.raises(InputError, match="'train.dev' has no text in sw"):
        pools_of(bitext_dir, languages=["sw"])


def test_pairs_with_a_side_seen_before_are_passed_over_in_all_files(tmp_path):
    write_pairs(tmp_path / "one", "de", ("cat", "Katze"), ("dog", "Hund"))
    write_pairs(tmp_path / "two", "de", ("cat", "Kater"), ("bird", "Vogel"))
    expected = [(b"cat", b"Katze"), (b"dog", b"Hund"), (b"bird", b"Vogel")]
    assert pools_of(tmp_path / "one", tmp_path / "two") == {"de": expected}
    pairs = [
        (b"yes", "так".encode()),
        (b"yes", "да".encode()),  # Two translations of one sentence: either would be right.
        (b"indeed", "так".encode()),
        ("はい".encode(), b"yes"),  # The sides are apart.
        (b"indeed", "да".encode()),  # Pairs that were passed over do not count.
        (b"no", "нет".encode()),
    ]
    assert distinct(pairs, 3) == [pairs[0], pairs[3], pairs[4]]
    assert distinct(pairs, 9) == [pairs[0], *pairs[3:]]


def test_a_language_with_one_pair_says_nothing(tmp_path, caplog):
    write_pairs(tmp_path / "dev", "de", ("cat", "Katze"), ("cat", "Kater"))
    with pytest.raises(InputError, match="no language with two different pairs"):
        pools_of(tmp_path / "dev")
    write_pairs(tmp_path / "dev", "fr", ("cat", "chat"), ("dog", "chien"))
    with caplog.at_level("INFO", "labse"):
        assert list(pools_of(tmp_path / "dev")) == ["fr"]
    assert "fewer than two pairs in de" in caplog.text
    write_pairs(tmp_path / "dev", "fr", ("cat", "chat"), ("dog", ""))
    with pytest.raises(InputError) as caught:
        pools_of(tmp_path / "dev")
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "dev" / "fr.tsv"), 2)
