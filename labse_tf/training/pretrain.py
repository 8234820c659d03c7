"""Pre-training: MLM + TLM, in stages of growing depth (LaBSE, sections 2.2 and 3.4)."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import Config
from labse_tf.data.pretraining import pretraining_batches
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, transform_masked
from labse_tf.model.sampled_softmax import draw_uniform, sampled_softmax
from labse_tf.model.stacking import stack, stage_depths
from labse_tf.tokenization import Tokenizer
from labse_tf.training import loop
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.run_dir import RunDir

_SAMPLES_SEED = 17


class MlmTrainer(loop.Trainer):
    """Cross-entropy of the masked tokens, a mean over all those of the global batch.

    The softmax goes over the whole vocabulary, so that each row of the tied table has a gradient
    and its update is dense; or, with `sampled_softmax` tokens drawn, over these and the labels.
    """

    def __init__(self, *, encoder, head, sampled_softmax: int = 0, **kwargs) -> None:
        super().__init__(variables=encoder.trainable_variables + head.trainable_variables, **kwargs)
        self._encoder = encoder
        self._head = head
        self._sampled_softmax = sampled_softmax
        names = ["tokens", "mlm_filled"]
        names += [f"{task}_{name}" for task in ("mlm", "tlm") for name in ("loss", "accuracy")]
        with self._strategy.scope():
            self.extra_metrics = {name: tf_keras.metrics.Mean(name) for name in names}

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        ids, weights = batch["masked_ids"], batch["masked_weights"]
        inputs = {name: batch[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}
        sequence = self._encoder(inputs, training=True)["sequence_output"]
        losses, hits = self._predict(sequence, batch["masked_positions"], ids)
        total = tf.reduce_sum(weights)
        replicas = tf.distribute.get_replica_context()
        if replicas.num_replicas_in_sync > 1:
            total = replicas.all_reduce("SUM", total)
        return tf.reduce_sum(losses * weights) / total, tf.reduce_sum(hits * weights) / total

    def _predict(self, sequence, positions, ids) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cross-entropy of each masked token and whether it is found, as `ids`."""
        if not self._sampled_softmax:
            logits = tf.cast(self._head(sequence, positions), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
            hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == ids, tf.float32)
            return losses, hits
        # All replicas draw the same tokens, others at each step.
        seed = tf.stack([self._optimizer.iterations, tf.constant(_SAMPLES_SEED, tf.int64)])
        drawn = draw_uniform(self._sampled_softmax, self._head.bias.shape[0], seed)
        losses, hits = sampled_softmax(
            transform_masked(self._head, sequence, positions),
            tf.reshape(ids, [-1]),
            self._head.embedding_table,
            self._head.bias,
            drawn,
        )
        return tf.reshape(losses, tf.shape(ids)), tf.reshape(hits, tf.shape(ids))

    def observe(self, batch, loss: tf.Tensor, accuracy: tf.Tensor) -> None:
        """Loss and accuracy by task, tokens a step, and the share of MLM's that is no padding."""
        mask = tf.cast(batch["input_mask"], tf.float32)
        tokens, filled = loop.sum_over_replicas([tf.reduce_sum(mask), tf.reduce_mean(mask)])
        filled /= self._strategy.num_replicas_in_sync
        # A batch is of one task; pairs alone have a second segment.
        is_tlm = tf.cast(tf.reduce_any(batch["input_type_ids"] == 1), tf.float32)
        self.extra_metrics["tokens"].update_state(tokens)
        self.extra_metrics["mlm_filled"].update_state(filled, sample_weight=1.0 - is_tlm)
        for task, weight in (("mlm", 1.0 - is_tlm), ("tlm", is_tlm)):
            self.extra_metrics[f"{task}_loss"].update_state(loss, sample_weight=weight)
            self.extra_metrics[f"{task}_accuracy"].update_state(accuracy, sample_weight=weight)


def pretrain(config: Config, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Goes through the stages, each from copies of the last one's layers; resumes inside any.

    The stages' checkpoints lie in `checkpoints/stage_1`, `stage_2`, ... The head is carried from
    stage to stage, the optimiser starts afresh.
    """
    tokenizer = Tokenizer(
        run_dir.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )
    depths = stage_depths(config.encoder.num_layers, len(config.pretrain.stage_steps))
    previous = None
    for stage, depth in enumerate(depths):
        with strategy.scope():
            tf_keras.utils.set_random_seed(config.seed + stage)
            encoder = build_encoder(config.encoder, num_layers=depth)
            head = build_mlm_head(config.encoder, encoder)
            if previous is not None:
                stack(previous[0], encoder)
                head.set_weights(previous[1].get_weights())
        _run_stage(config, run_dir, strategy, tokenizer, encoder, head, stage)
        previous = encoder, head


def _run_stage(config, run_dir, strategy, tokenizer, encoder, head, stage: int) -> None:
    settings = config.pretrain
    steps = settings.stage_steps[stage]
    with strategy.scope():
        optimizer = build_optimizer(settings.optimizer, steps=steps)
        optimizer.build(encoder.trainable_variables + head.trainable_variables)

    def make_trainer(steps_done: int) -> MlmTrainer:
        dataset = loop.distribute(
            strategy,
            lambda: pretraining_batches(config, tokenizer, stage=stage, skip=steps_done),
            settings.batch_size,
        )
        return MlmTrainer(
            encoder=encoder,
            head=head,
            sampled_softmax=settings.sampled_softmax,
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=settings.optimizer.clip_norm,
            dataset=dataset,
        )

    loop.run(
        description=f"pretrain, stage {stage + 1} of {len(settings.stage_steps)}"
        f" ({len(encoder.transformer_layers)} layers)",
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(encoder=encoder, head=head, optimizer=optimizer),
        checkpoint_dir=str(run_dir.checkpoints / f"stage_{stage + 1}"),
        run_dir=run_dir,
        steps=steps,
        loop=settings.loop,
        stage=stage,
    )
