"""`labse distill`: the loss, the batches, what students start with, and students themselves."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import runs
import tensorflow as tf
import tf_keras
from tiny_encoder import TINY_ENCODER, packed
from tiny_text import sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig, TrainConfig, load_config
from labse_tf.data import streams
from labse_tf.model.encoder import build_encoder
from labse_tf.model.static_encoder import Subwords
from labse_tf.systems.distill import start
from labse_tf.systems.distill.config import DistillRun
from labse_tf.systems.distill.start import principal_directions
from labse_tf.systems.distill.train import Distillation, text_batches, text_stream
from labse_tf.training.runs.checkpoints import load_encoder
from labse_tf.training.runs.run_dir import open_existing, resolve

STUDENT = ("encoder.num_layers=1", "pretrain.stage_steps=[1]", "tokenizer.vocab_file=")
STUDENT += ("train.steps=60", "train.loop.log_interval=20", "train.loop.checkpoint_interval=60")
STUDENT += ("train.bucket_lengths=[24]", "languages=[de,ja]")


@pytest.fixture
def distill(config_file, model_dir, monolingual_dir):
    def run(run_dir, *more, teacher=model_dir):
        sets = [*STUDENT, f"distill.monolingual=[{monolingual_dir}]", *more]
        arguments = runs.arguments("distill", config_file, run_dir, *sets)
        return main([*arguments, "--teacher", str(teacher)])

    return run


def losses_of(run_dir):
    return [line["loss"] for line in runs.lines(run_dir, "loss")]


def test_principal_directions_keep_what_is_there():
    """Vectors of three dimensions, turned into five: their inner products stay in three."""
    generator = np.random.default_rng(1)
    turn, _ = np.linalg.qr(generator.normal(size=(5, 5)))
    vectors = (generator.normal(size=(50, 3)) @ turn[:3]).astype(np.float32)
    directions = principal_directions(vectors, 3)
    assert directions.shape == (5, 3) and directions.dtype == np.float32
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-5)
    reduced = vectors @ directions
    np.testing.assert_allclose(reduced @ reduced.T, vectors @ vectors.T, atol=1e-4)
    # The mean is the strongest.
    shifted = np.ones((50, 4)) * 10 + generator.normal(size=(50, 4))
    first = principal_directions(shifted.astype(np.float32), 1)[:, 0]
    np.testing.assert_allclose(np.abs(first), 0.5, atol=0.05)


def tiny_encoder(seed, **sizes):
    tf_keras.utils.set_random_seed(seed)
    return build_encoder(dataclasses.replace(TINY_ENCODER, **sizes), replayable=True)


BATCH = packed(np.random.default_rng(2).integers(5, 30, (4, 6)))


@pytest.mark.parametrize(("projected", "dims"), [(False, []), (True, [5, 2])])
def test_the_loss_by_numpy(projected, dims):
    encoder = tiny_encoder(1)
    generator = np.random.default_rng(2)
    given = generator.normal(size=(4, 12 if projected else 8)).astype(np.float32)
    projection = generator.normal(size=(12, 8)).astype(np.float32) if projected else None
    objective = Distillation(
        encoder=encoder,
        teacher=lambda inputs: {"default": tf.constant(given)},
        projection=projection,
        settings=TrainConfig(matryoshka=dims),
    )
    loss, accuracy = objective.loss(BATCH, tf.constant(0, tf.int64))

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    wanted = unit(unit(given) @ projection) if projected else unit(given)
    found = unit(encoder(BATCH)["pooled_output"].numpy())
    cosines = [(unit(wanted[:, :dim]) * unit(found[:, :dim])).sum(axis=1) for dim in [8, *dims]]
    np.testing.assert_allclose(loss, np.mean(2 - 2 * np.array(cosines)), rtol=1e-5)
    expected = np.mean((found @ wanted.T).argmax(axis=1) == np.arange(4))
    np.testing.assert_allclose(accuracy, expected)


def test_a_student_starts_with_every_other_layer():
    teacher, student = tiny_encoder(1, num_layers=6), tiny_encoder(2, num_layers=3)
    start.start_as(student, teacher.variables, 3)
    theirs = {variable.name: variable.numpy() for variable in teacher.variables}
    for variable in student.variables:
        name = re.sub(r"(?<=layer_)\d", lambda found: str(2 * int(found[0]) + 1), variable.name)
        np.testing.assert_array_equal(variable, theirs[name], err_msg=name)


def test_a_rotated_pooler_rotates_the_mean():
    """The start of a student as wide as its teacher that learns principal directions."""
    encoder = tiny_encoder(1)
    [bias] = [v for v in encoder.variables if "pooler" in v.name and "bias" in v.name]
    bias.assign(tf.range(8.0) / 8)
    before = encoder(BATCH)["pooled_output"].numpy()
    rotation = principal_directions(before, 8)
    start.rotate_pooler(encoder, rotation)
    np.testing.assert_allclose(encoder(BATCH)["pooled_output"], before @ rotation, atol=1e-5)


@pytest.fixture
def text_config(config_file, monolingual_dir, bitext_dir):
    changes = [f"distill.monolingual=[{monolingual_dir}]", "languages=[de,th]", "seed=3"]
    changes += ["train.bucket_lengths=[16,24,40]"]
    return resolve(load_config(config_file, changes, DistillRun))


def test_texts_of_sentences_and_of_both_sides(text_config, tokenizer, monkeypatch):
    """And a resumed run sees the batches that follow."""
    stream = text_stream(text_config, seed=3).take(1000).as_numpy_iterator()
    seen = {text.decode("utf-8") for text in stream}
    assert {"Katze und Haus.", "cat and house.", "แมวกับบ้าน"} <= seen and "猫と家。" not in seen
    monkeypatch.setattr(streams, "SEGMENT", 10)

    def some(step, count):
        batches = text_batches(text_config, tokenizer, step).take(count).as_numpy_iterator()
        return [batch["input_word_ids"] for batch in batches]

    first, second = some(0, 10), some(10, 4)
    assert {len(batch) for batch in first} == {8}
    assert {batch.shape[1] for batch in first} <= {16, 24, 40}
    # Like lengths come together: little is padding.
    assert np.mean([np.mean(batch != 0) for batch in first]) > 0.7
    for found, expected in ((some(7, 3), first[7:]), (some(11, 3), second[1:])):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_student_comes_nearer_and_is_compared(distill, tmp_path, model_dir, bitext_dir, capsys):
    run, texts = tmp_path / "run", ["Katze und Haus.", "猫と家。"]
    assert distill(run, f"train.dev=[{bitext_dir}]", "train.dev_interval=60") == 0
    losses = losses_of(run)
    assert len(losses) == 3 and losses[-1] < 0.7 * losses[0]
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["dim", "teacher", "student"]
    teacher, student = (int(line.split()[2].replace(",", "")) for line in table[1:])
    # A layer of 16: a table of attention, two of the feed-forward part, their biases and norms.
    assert teacher - student == 4 * (16 * 16 + 16) + 2 * 16 * 32 + 32 + 16 + 4 * 16
    expected = labse_tf.load(model_dir).encode(texts)
    assert (runs.embedder_of(run).encode(texts) * expected).sum(axis=1).min() > 0.8


NARROW = ("encoder.hidden_size=8", "encoder.intermediate_size=16")
STATIC = ("encoder.num_layers=0", "encoder.subwords=[1,3]", "train.optimizer.learning_rate=0.003")
STATIC += ("train.optimizer.table_update=adagrad",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sets", "width", "gain", "least"),
    [(NARROW, 8, 0.7, 0.5), (["train.matryoshka=[4]"], 16, 0.7, 0.9), (STATIC, 14, 0.9, 0.8)],
)
def test_a_student_of_principal_directions(distill, tmp_path, model_dir, sets, width, gain, least):
    """A narrow one; one whose leading columns are vectors; one without layers."""
    run = tmp_path / "run"
    assert distill(run, *sets) == 0
    losses = losses_of(run)
    assert losses[-1] < gain * losses[0], losses
    projection = np.load(run / "projection.npy", allow_pickle=False)
    own = projection[:, :width]
    np.testing.assert_allclose(own.T @ own, np.eye(width), atol=1e-5)
    columns = 4 if sets not in (NARROW, STATIC) else projection.shape[1]
    sentences = sentences_of("de")
    found = runs.embedder_of(run).encode(sentences)[:, :columns]
    wanted = (labse_tf.load(model_dir).encode(sentences) @ projection)[:, :columns]
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
    assert ((found * wanted).sum(axis=1) / lengths).mean() > least
    if sets is STATIC:  # Layers could be put on top of it.
        table = load_encoder(open_existing(run)).get_embedding_table().numpy()
        assert np.abs(table[:, -2:]).max() < 1e-6 and not projection[:, -2:].any()


def test_refusals(distill, tmp_path, capsys):
    for settings, problem in (
        (["encoder.hidden_size=32"], "'encoder.hidden_size' is 32, the teacher's 16"),
        (["train.bucket_lengths=[16,256]"], "'train.bucket_lengths' is [16, 256]"),
        (["encoder.max_positions=512"], "'encoder.max_positions' is 512, the teacher's 128"),
        (["train.matryoshka=[17]"], "'train.matryoshka' is [17]"),
        (["encoder.num_layers=8"], "'encoder.num_layers' is 8, the teacher's 2"),
        (["encoder.intermediate_size=64"], "'encoder.intermediate_size' is 64, but 32 in the"),
        (["distill.monolingual=[]", "train.bitext=[]"], "'distill.monolingual' is empty"),
        ([], "is not a model dir"),
    ):
        changes = {} if settings else {"teacher": tmp_path}
        assert distill(tmp_path / "run", *settings, **changes) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("labse: error: ") and problem in error
        assert not (tmp_path / "run").exists()


def teacher_of(tokenizer):
    """The vector of a text has its sum of ids, and 1."""

    def teacher(inputs):
        ids = tf.cast(inputs["input_word_ids"] * inputs["input_mask"], tf.float32)
        total = tf.reduce_sum(ids, axis=1)
        return {"default": tf.stack([total, tf.ones_like(total)], axis=1)}

    return teacher


@pytest.mark.parametrize("lengths", [(), (1, 3)])
def test_tokens_are_embedded_as_texts_and_frequent_ones_count_less(tokenizer, lengths):
    texts, special = ["Katze und Haus.", "Katze und Baum.", "猫と家。"], tokenizer.special_tokens
    shares = start.token_shares(tokenizer, texts)
    ids = tokenizer(tf.constant(texts)).values.numpy()
    often = np.bincount(ids).argmax()
    assert shares.sum() == pytest.approx(1)
    assert shares[often] == pytest.approx((ids == often).sum() / len(ids))
    sizes = EncoderConfig(vocab_size=len(tokenizer.tokens), hidden_size=4, num_layers=0)
    subwords = Subwords(tokenizer.tokens, lengths) if lengths else None
    encoder = build_encoder(sizes, subwords=subwords)
    projection = np.eye(2, 4, dtype=np.float32)
    common = {"teacher": teacher_of(tokenizer), "tokenizer": tokenizer, "texts": texts}
    start.start_static(encoder, subwords, projection=projection, **common)
    table = encoder.get_embedding_table().numpy()
    table = subwords.fold(table) if subwords else table
    ends = special["start_of_sequence_id"] + special["end_of_segment_id"]
    expected = np.stack([ends + np.arange(len(shares)), np.ones(len(shares))], axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    expected *= (1e-3 / (1e-3 + shares))[:, np.newaxis]
    np.testing.assert_allclose(table[:, :2], expected, rtol=1e-5, atol=1e-6)
    assert not table[:, 2:].any()
