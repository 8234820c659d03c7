"""Distillation: a student learns the vectors that its teacher computes for the same texts."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras

import labse_tf
from labse_tf.config import BERT, EncoderConfig, TrainConfig, changed
from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.data.texts import input_errors
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file
from labse_tf.losses import leading_columns
from labse_tf.model import exported
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.model.static_encoder import SPARE_COLUMNS
from labse_tf.systems.distill.batches import text_batches, text_stream
from labse_tf.systems.distill.config import DistillRun
from labse_tf.systems.distill.start import (
    principal_directions,
    rotate_pooler,
    start_as,
    start_static,
)
from labse_tf.training.distribution import from_first_replica
from labse_tf.training.dual_encoder import on_strategy, stage_of
from labse_tf.training.fit import fit
from labse_tf.training.objectives import Objective, Tables
from labse_tf.training.runs.checkpoints import load_subwords, load_tokenizer
from labse_tf.training.runs.run_dir import RunDir, resolve
from labse_tf.training.validation import validation_of

PROJECTION_FILE = "projection.npy"
# Texts from whose vectors the teacher's principal directions are computed.
_SAMPLE = 8192

_log = logging.getLogger("labse")


class Distillation(Objective):
    """Mean squared distance between the unit vectors of student and teacher.

    For unit vectors that is 2 - 2 cos. The accuracy is the share of texts whose own teacher vector
    is the nearest one in the replica's batch.

    With `matryoshka`, the loss is the mean over the student's own dimension and these: of the
    leading columns of both vectors, scaled to unit length. The columns of `projection` are the
    teacher's principal directions, the strongest first, so the leading d columns of what a student
    learns are the projection onto d of them: there is no better one of inner products. A teacher's
    own leading columns are no better than any others, unless it was trained with `matryoshka`.
    """

    def __init__(
        self,
        *,
        encoder,
        teacher,
        projection: np.ndarray | None,
        settings: TrainConfig | None = None,
    ) -> None:
        """Takes student and teacher.

        Args:
          encoder: the student, from `build_encoder`, `replayable` if it has dropout.
          teacher: maps encoder inputs to `default`, `[batch, teacher dim]`; not trained.
          projection: float32 `[teacher dim, student dim]`; None: the student learns the teacher's
            vectors as they are.
          settings: `matryoshka` is read.
        """
        super().__init__({"encoder": encoder}, features=ENCODER_INPUTS)
        self._encoder, self._teacher = encoder, teacher
        self._projection = None if projection is None else tf.constant(projection)
        self._settings = settings or TrainConfig()

    def tables_read(self, batch, step: tf.Tensor) -> Tables:
        return [(self._encoder.get_embedding_table(), self._encoder.rows(batch))]

    def loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        wanted = tf.stop_gradient(self._teacher(batch)["default"])
        if self._projection is not None:
            # The directions were computed from unit vectors.
            wanted = tf.matmul(tf.math.l2_normalize(wanted, axis=1), self._projection)
        wanted = tf.math.l2_normalize(wanted, axis=1)
        vectors = embed(self._encoder, batch, training=True)
        rows = tf.shape(vectors)[0]
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        divisor = tf.cast(replicas * rows, tf.float32)
        nearest = tf.argmax(tf.matmul(vectors, wanted, transpose_b=True), 1, output_type=tf.int32)
        hits = tf.cast(nearest == tf.range(rows), tf.float32)
        distances = [
            tf.reduce_sum(tf.square(leading_columns(vectors, dim) - leading_columns(wanted, dim)))
            for dim in self._settings.dims(vectors.shape[-1])
        ]
        return tf.add_n(distances) / len(distances) / divisor, tf.reduce_sum(hits) / divisor


def distill(config: DistillRun, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains `config.encoder` as a student of `config.distill.teacher`, or resumes.

    A student as wide as its teacher starts with the teacher's embeddings, pooler and an evenly
    spaced selection of its layers. A narrower student, and any with `train.matryoshka`, learns the
    teacher's vectors projected onto their principal directions; one as wide, onto all of them,
    which is a rotation, and its pooler is rotated for a start. A student without layers learns the
    projected vectors too, and starts with its teacher's vectors of single tokens.

    Raises:
      InputError: as `fit` raises.
    """
    settings = config.train
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        teacher = tf.saved_model.load(os.path.join(config.distill.teacher, "encoder"))
        subwords = load_subwords(run_dir)
        encoder = build_encoder(
            config.encoder, compute=config.compute, replayable=True, subwords=subwords
        )
        width = teacher_width(teacher)
        static = config.encoder.network == BERT and not config.encoder.num_layers
        as_wide = width == config.encoder.hidden_size
        starts_as_teacher = as_wide and config.encoder.network == BERT and not static
        if starts_as_teacher:
            start_as(encoder, teacher.variables, config.encoder.num_layers)
    projection = None
    if not as_wide or static or settings.matryoshka:
        projection = np.zeros((width, config.encoder.hidden_size), np.float32)
        if strategy.extended.should_checkpoint:
            projection = _read_or_make_projection(config, run_dir)
        # From one machine, as directions are only unique up to sign.
        projection = from_first_replica(strategy, projection)
    if starts_as_teacher and projection is not None:
        rotate_pooler(encoder, projection)
    if static and tf.train.latest_checkpoint(run_dir.checkpoints) is None:
        _log.info("start with the teacher's vectors of %d tokens", config.encoder.vocab_size)
        with strategy.scope():
            start_static(
                encoder,
                subwords,
                teacher=teacher,
                projection=projection,
                tokenizer=tokenizer,
                texts=_sample(config),
            )

    settings = on_strategy(settings, strategy)

    def batches(step: int) -> tf.data.Dataset:
        order = {"languages": config.languages, "seed": config.seed, "step": step}
        return text_batches(config.distill, settings, tokenizer, **order)

    objective = Distillation(
        encoder=encoder, teacher=teacher, projection=projection, settings=settings
    )
    fit(
        objective,
        batches,
        stage_of(settings, "distill", run_dir.checkpoints),
        run_dir,
        strategy,
        validation_of(
            settings,
            languages=config.languages,
            strategy=strategy,
            encoder=encoder,
            tokenizer=tokenizer,
        ),
    )


def _sample(config: DistillRun) -> list[str]:
    with input_errors():
        order = {"languages": config.languages, "seed": config.seed}
        texts = text_stream(config.distill, config.train, **order).take(_SAMPLE)
        return [text.decode("utf-8") for text in texts.as_numpy_iterator()]


def resolve_student(config: DistillRun, teacher: str) -> DistillRun:
    """Returns the configuration of a student of `teacher`, with the teacher's tokeniser.

    Raises:
      InputError: if `teacher` is not a model dir, or the student does not fit it.
    """
    if not Path(teacher, exported.FACTS_FILE).is_file():
        raise InputError(
            f"is not a model dir: it has no {exported.FACTS_FILE}",
            path=teacher,
            remedy="name the --out of `labse export` or `labse import-hf`",
        )
    sizes = exported.read_encoder_config(teacher)
    facts = json.loads(Path(teacher, exported.FACTS_FILE).read_text("utf-8"))
    vocab_file = str(Path(teacher, exported.VOCAB_FILE))
    known = {
        "tokenizer.vocab_file": vocab_file,
        "tokenizer.max_bytes_per_word": facts["max_bytes_per_word"],
        "encoder.vocab_size": sizes.vocab_size,
        "distill.teacher": teacher,
    }
    config = changed(config, known)
    as_wide = config.encoder.hidden_size == sizes.hidden_size
    if as_wide and config.encoder.num_layers and config.encoder.network == BERT:
        _check_layers(config.encoder, sizes)
        config = changed(config, {"encoder.activation": sizes.activation})
    config = resolve(config, [*config.distill.monolingual, *config.train.bitext])
    if config.encoder.hidden_size > sizes.hidden_size:
        raise InputError(
            f"the student is {config.encoder.hidden_size} wide, its teacher {sizes.hidden_size}",
            remedy="set 'encoder.hidden_size' to that or less",
        )
    # Positions beyond the teacher's would be untrained.
    if config.encoder.max_positions > sizes.max_positions:
        raise InputError(
            f"'encoder.max_positions' is {config.encoder.max_positions}, the teacher's "
            f"{sizes.max_positions}",
            remedy="set it to that or less",
        )
    return config


def _check_layers(student: EncoderConfig, teacher: EncoderConfig) -> None:
    """Rejects a student as wide as its teacher that cannot start with the teacher's layers."""
    if teacher.network != BERT:
        raise InputError(
            f"the teacher is a {teacher.network}, whose layers a Transformer cannot start from",
            remedy="make the student narrower, or an encoder without layers",
        )
    for name in ("num_attention_heads", "intermediate_size"):
        here, there = getattr(student, name), getattr(teacher, name)
        if here != there:
            raise InputError(
                f"'encoder.{name}' is {here}, but {there} in the teacher, from whose layers the "
                "student starts",
                remedy=f"add --set encoder.{name}={there}, or make the student narrower",
            )
    if student.num_layers > teacher.num_layers:
        raise InputError(
            f"the student has {student.num_layers} layers, its teacher {teacher.num_layers}",
            remedy="set 'encoder.num_layers' to that or less",
        )


def teacher_width(teacher) -> int:
    """Returns the dimension of the vectors of a loaded encoder SavedModel."""
    outputs = teacher.signatures["serving_default"].structured_outputs
    return outputs["default"].shape[1]


def _read_or_make_projection(config: DistillRun, run_dir: RunDir) -> np.ndarray:
    file = Path(run_dir.path, PROJECTION_FILE)
    if file.exists():
        return np.load(file, allow_pickle=False)
    _log.info("embed %d texts to find the teacher's principal directions", _SAMPLE)
    vectors = labse_tf.load(config.distill.teacher).encode(_sample(config), show_progress=True)
    width = config.encoder.hidden_size
    if config.encoder.num_layers:
        projection = principal_directions(vectors, width)
    else:
        # So that layers can be put on top of the student.
        projection = principal_directions(vectors, width - SPARE_COLUMNS)
        projection = np.pad(projection, [(0, 0), (0, SPARE_COLUMNS)])
    with whole_file(file) as partial, open(partial, "wb") as output:
        np.save(output, projection)
    return projection
