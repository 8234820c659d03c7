"""Pre-training: MLM + TLM or CMLM, in stages of growing depth (LaBSE, section 3.2)."""

from __future__ import annotations

import functools

import tensorflow as tf
import tf_keras

from labse_tf.config import BERT, CMLM, Config
from labse_tf.config.shares import check_chunks, check_even
from labse_tf.data.held_out import HeldOut, read_held_out
from labse_tf.data.neighbours import read_held_out_neighbours
from labse_tf.data.streams import WHOLE, Part
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.model.stacking import stack, stage_depths
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.training.loop.fit import Stage, fit
from labse_tf.training.masked_model import (
    MaskedModel,
    add_heads,
    masked_batches,
    sources_of_batch,
)
from labse_tf.training.mlm_trainer import MlmTrainer
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.start import start_from
from labse_tf.training.validation.course import Validation
from labse_tf.training.validation.held_out import HeldOutEvaluator


def first_depth(config: Config) -> int:
    """Returns the number of layers of the first stage's encoder."""
    return _depths(config)[0]


def pretrain(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains all stages, each from copies of the previous one's layers; resumes within any stage.

    The stages' checkpoints are in `checkpoints/stage_1`, `stage_2`, ... The head and the slots are
    kept from stage to stage; the optimiser is reset. The first stage starts from copies of the
    layers of `init`, if there is one, or on its table if it has none.

    Raises:
      InputError: if the encoder is no BERT, or the replicas, or chunks of `pretrain.chunk_size`,
        cannot share a batch.
    """
    if config.encoder.network != BERT:
        raise InputError(
            f"'encoder.network' is {config.encoder.network!r}, but only BERT can be pre-trained",
            remedy="remove it, or train the dual encoder directly: `labse train`",
        )
    settings, replicas = config.pretrain, strategy.num_replicas_in_sync
    check_even(settings.batch_size, replicas)
    check_chunks(settings.batch_size // replicas, settings.chunk_size)
    tokenizer = load_tokenizer(run_dir)
    held_out: dict[str, HeldOut] = {}
    if settings.held_out:
        read = read_held_out_neighbours if settings.objective == CMLM else read_held_out
        held_out = read(settings, tokenizer, config.languages)
    source = None
    for stage, depth in enumerate(_depths(config)):
        model = _build(config, strategy, depth, seed=config.seed + stage)
        with strategy.scope():
            if source is not None:
                stack(source.encoder, model.encoder)
                model.copy_heads(source)
            elif init is not None:
                start_from(init, model.encoder, config, run_dir, strategy, model=model)
        # This drops the last reference to the previous stage: both might not fit in memory.
        source = model
        _run_stage(config, run_dir, strategy, tokenizer, model, stage, held_out)


def _depths(config: Config) -> list[int]:
    return stage_depths(config.encoder.num_layers, len(config.pretrain.stage_steps))


def _build(config: Config, strategy, depth: int, *, seed: int) -> MaskedModel:
    with strategy.scope():
        tf_keras.utils.set_random_seed(seed)
        encoder = build_encoder(
            config.encoder, num_layers=depth, compute=config.compute, replayable=True
        )
        return add_heads(encoder, config)


def _run_stage(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    tokenizer: Tokenizer,
    model: MaskedModel,
    number: int,
    held_out: dict[str, HeldOut],
) -> None:
    settings = config.pretrain

    def batches(step: int, part: Part = WHOLE) -> tf.data.Dataset:
        return masked_batches(config, tokenizer, stage=number, step=step, part=part)

    def sources_of(step: int) -> list[str]:
        return sources_of_batch(config, batches(step - 1))

    validation = None
    if held_out:
        evaluator = HeldOutEvaluator(
            strategy=strategy,
            encoder=model.encoder,
            head=model.head,
            slots=model.slots,
            examples=held_out,
        )
        validation = Validation(evaluator, settings.held_out_interval)
    fit(
        Stage(
            description=f"pretrain, stage {number + 1} of {len(settings.stage_steps)}"
            f" ({len(model.encoder.transformer_layers)} layers)",
            steps=settings.stage_steps[number],
            batch_size=settings.batch_size,
            input_parts=settings.input_parts,
            optimizer=settings.optimizer,
            loop=settings.loop,
            checkpoints=run_dir.checkpoints / f"stage_{number + 1}",
            number=number,
        ),
        trainer=functools.partial(
            MlmTrainer,
            model=model,
            sampled_softmax=settings.sampled_softmax,
            chunk_size=settings.chunk_size,
            sources_of=sources_of,
        ),
        batches=batches,
        model=model.parts,
        variables=model.variables,
        run_dir=run_dir,
        strategy=strategy,
        validation=validation,
    )
