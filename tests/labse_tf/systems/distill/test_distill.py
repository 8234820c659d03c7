"""`labse distill`: the loss, what a student starts with, and students of the tiny model."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tiny_text import sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig, TrainConfig, load_config
from labse_tf.data import streams
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.distill.batches import text_batches, text_stream
from labse_tf.systems.distill.config import DistillRun
from labse_tf.systems.distill.start import principal_directions, rotate_pooler, start_as
from labse_tf.systems.distill.train import Distillation
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing, resolve
from labse_tf.training.validation import RunEmbedder

STUDENT = (
    "encoder.num_layers=1",
    "pretrain.stage_steps=[1]",
    "tokenizer.vocab_file=",
    "train.steps=60",
    "train.loop.log_interval=20",
    "train.loop.checkpoint_interval=30",
    "train.bucket_lengths=[16,32]",
    "languages=[de,ja]",
)


def distill(config_file, run_dir, model_dir, monolingual_dir, *more):
    settings = [*STUDENT, f"distill.monolingual=[{monolingual_dir}]", *more]
    arguments = ["--teacher", str(model_dir), "--run-dir", str(run_dir)]
    overrides = [f"--set={setting}" for setting in settings]
    return main(["distill", str(config_file), *arguments, *overrides])


def metrics(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


# The parts.


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
    # The strongest come first, and the mean is one of them.
    shifted = np.ones((50, 4)) * 10 + generator.normal(size=(50, 4))
    first = principal_directions(shifted.astype(np.float32), 1)[:, 0]
    np.testing.assert_allclose(np.abs(first), 0.5, atol=0.05)


def tiny_encoder(seed, num_layers=2, hidden_size=8, pooling="cls"):
    tf.keras.utils.set_random_seed(seed)
    return build_encoder(
        EncoderConfig(
            vocab_size=30,
            hidden_size=hidden_size,
            num_layers=num_layers,
            num_attention_heads=2,
            intermediate_size=16,
            max_positions=8,
            dropout=0.0,
            initializer_range=0.5,
            pooling=pooling,
        ),
        replayable=True,
    )


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("dims", [[], [5, 2]])
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
    ids = tf.constant(generator.integers(5, 30, (4, 6)), tf.int32)
    batch = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
    loss, accuracy = objective.loss(batch, tf.constant(0, tf.int64))

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    wanted = unit(unit(given) @ projection) if projected else unit(given)
    found = unit(encoder(batch)["pooled_output"].numpy())
    losses = [
        np.mean(2 - 2 * (unit(wanted[:, :dim]) * unit(found[:, :dim])).sum(axis=1))
        for dim in [8, *dims]
    ]
    np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-5)
    expected = np.mean((found @ wanted.T).argmax(axis=1) == np.arange(4))
    np.testing.assert_allclose(accuracy, expected)


def test_a_student_starts_with_every_other_layer():
    teacher, student = tiny_encoder(1, num_layers=6), tiny_encoder(2, num_layers=3)
    start_as(student, teacher.variables, 3)
    theirs = {variable.name: variable.numpy() for variable in teacher.variables}
    for variable in student.variables:
        name = variable.name
        for ours, source in ((2, 5), (1, 3), (0, 1)):
            if f"layer_{ours}/" in name:
                name = name.replace(f"layer_{ours}/", f"layer_{source}/")
                break
        np.testing.assert_array_equal(variable, theirs[name], err_msg=name)


def test_a_rotated_pooler_rotates_the_mean():
    """What a student as wide as its teacher starts with to learn principal directions."""
    encoder = tiny_encoder(1, pooling="mean")
    ids = tf.constant(np.random.default_rng(2).integers(5, 30, (4, 6)), tf.int32)
    batch = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
    [bias] = [v for v in encoder.variables if "pooler" in v.name and "bias" in v.name]
    bias.assign(tf.range(8.0) / 8)
    before = encoder(batch)["pooled_output"].numpy()
    rotation = principal_directions(before, 8)
    rotate_pooler(encoder, rotation)
    np.testing.assert_allclose(encoder(batch)["pooled_output"], before @ rotation, atol=1e-5)


@pytest.fixture
def text_config(config_file, monolingual_dir, bitext_dir):
    changes = [f"distill.monolingual=[{monolingual_dir}]", "languages=[de,th]", "seed=3"]
    changes += ["train.bucket_lengths=[16,24,40]"]
    return resolve(load_config(config_file, changes, DistillRun))


def stream_of(config):
    order = {"languages": config.languages, "seed": config.seed}
    return text_stream(config.distill, config.train, **order)


def batches_of(config, tokenizer, step=0):
    order = {"languages": config.languages, "seed": config.seed, "step": step}
    return text_batches(config.distill, config.train, tokenizer, **order)


def test_texts_of_sentences_and_of_both_sides(text_config, tokenizer):
    seen = {text.decode("utf-8") for text in stream_of(text_config).take(4000).as_numpy_iterator()}
    assert {"Katze und Haus.", "cat and house.", "แมวกับบ้าน"} <= seen
    assert "猫と家。" not in seen
    batches = [batch["input_word_ids"] for batch in batches_of(text_config, tokenizer).take(40)]
    assert {batch.shape[0] for batch in batches} == {8}
    assert {batch.shape[1] for batch in batches} <= {16, 24, 40}
    # Like lengths come together: little is padding.
    assert np.mean([np.mean(batch.numpy() != 0) for batch in batches]) > 0.7


@pytest.mark.parametrize("skip", [1, 20])
def test_skipping_is_leaving_out(text_config, tokenizer, skip):
    whole = batches_of(text_config, tokenizer).take(skip + 3).as_numpy_iterator()
    rest = batches_of(text_config, tokenizer, step=skip).take(3).as_numpy_iterator()
    for expected, found in zip(list(whole)[skip:], rest, strict=True):
        np.testing.assert_array_equal(found["input_word_ids"], expected["input_word_ids"])


def test_a_segment_of_texts_is_read_anew(text_config, tokenizer, monkeypatch):
    monkeypatch.setattr(streams, "SEGMENT", 4)
    first, second, later = (
        [batch["input_word_ids"] for batch in taken.as_numpy_iterator()]
        for taken in (batches_of(text_config, tokenizer, step).take(3) for step in (0, 4, 5))
    )
    assert not all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    np.testing.assert_array_equal(later[0], second[1])


# Students.


def test_a_student_comes_nearer_and_goes_on_where_it_was_stopped(
    tmp_path, config_file, model_dir, monolingual_dir, bitext_dir, capsys
):
    run = tmp_path / "run"
    more = (f"train.dev=[{bitext_dir}]", "train.dev_interval=60")
    assert distill(config_file, run, model_dir, monolingual_dir, *more) == 0
    losses = [line["loss"] for line in metrics(run) if "loss" in line]
    assert len(losses) == 3 and losses[-1] < 0.7 * losses[0]
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["dim", "teacher", "student"]
    teacher, student = (int(line.split()[2].replace(",", "")) for line in table[1:])
    assert student < teacher
    # A layer of 16: a table of attention, two of the feed-forward part, their biases and norms.
    layer = 4 * (16 * 16 + 16) + 2 * 16 * 32 + 32 + 16 + 4 * 16
    assert teacher - student == layer
    run_dir = open_existing(run)
    network, tokenizer = load_encoder(run_dir), load_tokenizer(run_dir)
    student = RunEmbedder(network, tokenizer, sequence_length=32)
    vectors = student.encode(["Katze und Haus.", "猫と家。"])
    expected = labse_tf.load(model_dir).encode(["Katze und Haus.", "猫と家。"])
    assert (vectors * expected).sum(axis=1).min() > 0.8

    again = tmp_path / "again"
    shutil.copytree(run, again)
    folder = again / "checkpoints"
    for file in folder.glob("ckpt-60*"):
        file.unlink()
    shutil.rmtree(folder / "best")
    tf.compat.v1.train.update_checkpoint_state(str(folder), str(folder / "ckpt-30"))
    assert distill(config_file, again, model_dir, monolingual_dir, *more) == 0
    one, other = (load_encoder(open_existing(path)).get_weights() for path in (run, again))
    for found, wanted in zip(other, one, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("width", [8, 16])
def test_a_student_of_principal_directions(
    tmp_path, config_file, model_dir, monolingual_dir, width
):
    """A narrower one, and one as wide whose leading columns are to be vectors."""
    run = tmp_path / "run"
    sizes = (f"encoder.hidden_size={width}", f"encoder.intermediate_size={2 * width}")
    dims = ("train.matryoshka=[4]",) if width == 16 else ()
    assert distill(config_file, run, model_dir, monolingual_dir, *sizes, *dims) == 0
    losses = [line["loss"] for line in metrics(run) if "loss" in line]
    assert losses[-1] < 0.7 * losses[0]
    projection = np.load(run / "projection.npy", allow_pickle=False)
    np.testing.assert_allclose(projection.T @ projection, np.eye(width), atol=1e-5)
    if dims:
        run_dir = open_existing(run)
        network, tokenizer = load_encoder(run_dir), load_tokenizer(run_dir)
        sentences = sentences_of("de")
        found = RunEmbedder(network, tokenizer, sequence_length=32).encode(sentences)[:, :4]
        wanted = (labse_tf.load(model_dir).encode(sentences) @ projection)[:, :4]
        lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
        assert ((found * wanted).sum(axis=1) / lengths).mean() > 0.9


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["encoder.hidden_size=32"], "the student is 32 wide, its teacher 16"),
        (
            ["train.bucket_lengths=[16,256]", "train.bitext=[]"],
            "'train.bucket_lengths' is [16, 256]",
        ),
        (["encoder.max_positions=512"], "'encoder.max_positions' is 512, the teacher's 128"),
        (["train.matryoshka=[17]"], "'train.matryoshka' is [17]"),
        (["encoder.num_layers=8"], "the student has 8 layers, its teacher 2"),
        (
            ["encoder.intermediate_size=64"],
            "'encoder.intermediate_size' is 64, but 32 in the teacher",
        ),
        (["distill.monolingual=[]", "train.bitext=[]"], "'distill.monolingual' is empty"),
    ],
)
def test_refusals(tmp_path, config_file, model_dir, monolingual_dir, capsys, settings, problem):
    assert distill(config_file, tmp_path / "run", model_dir, monolingual_dir, *settings) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("labse: error: ") and problem in error
    assert not (tmp_path / "run").exists()


def test_a_teacher_that_is_no_model_dir(
    tmp_path, config_file, trained_run, capsys, monolingual_dir
):
    assert distill(config_file, tmp_path / "run", trained_run, monolingual_dir) == 2
    assert f"{trained_run}: is not a model dir" in capsys.readouterr().err
