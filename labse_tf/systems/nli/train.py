"""Fine-tuning of an encoder on natural language inference (Yang et al. 2021, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orbit
import tensorflow as tf
import tf_keras

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import InferencePairs, labels_of, read_inference_pairs
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.systems.nli.batches import INFERENCE_FEATURES, inference_batches
from labse_tf.systems.nli.config import NliRun
from labse_tf.training.fit import Stage, fit
from labse_tf.training.objectives import Objective, Tables
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.initial_weights import restore, write_report
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.validation import Validation

_LABEL = "inference"


def build_classifier(labels: int, width: int) -> tf_keras.layers.Dense:
    """Returns the layer that maps `pair_vectors`, `[batch, 4 * width]`, to a logit a label."""
    layer = tf_keras.layers.Dense(
        labels, kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02), name="nli"
    )
    layer.build((None, 4 * width))
    return layer


def pair_vectors(premises: tf.Tensor, hypotheses: tf.Tensor) -> tf.Tensor:
    """Returns `[u, v, |u - v|, u * v]`, float32 `[batch, 4 * width]`.

    u and v are the embeddings times the root of their width: unit vectors have columns so small
    that a linear layer would learn from them slowly.

    Args:
      premises: unit rows, `[batch, width]`.
      hypotheses: likewise.
    """
    root = premises.shape[-1] ** 0.5
    u, v = root * premises, root * hypotheses
    return tf.concat([u, v, tf.abs(u - v), u * v], axis=1)


class Inference(Objective):
    """Cross-entropy of the label of premise and hypothesis, predicted from their embeddings."""

    def __init__(
        self,
        *,
        encoder: EncoderNetwork,
        classifier: tf_keras.layers.Dense,
        train_encoder: bool,
    ) -> None:
        """Takes the model.

        Args:
          encoder: any dropout must be replayable.
          classifier: from `build_classifier`.
          train_encoder: whether to train it too; if not, it has no dropout either.
        """
        super().__init__(
            {"encoder": encoder, "classifier": classifier},
            features=INFERENCE_FEATURES,
            variables=None if train_encoder else classifier.trainable_variables,
        )
        self._trains_encoder = train_encoder
        self._encoder, self._classifier = encoder, classifier

    def tables_read(self, batch, step: tf.Tensor) -> Tables:
        if not self._trains_encoder:
            return []
        return [(self._encoder.get_embedding_table(), self._encoder.rows(_both(batch)))]

    def loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        vectors = embed(self._encoder, _both(batch), training=self._trains_encoder)
        logits = self._classifier(pair_vectors(*tf.split(vectors, 2)))
        labels = batch["label"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        hits = tf.cast(tf.argmax(logits, axis=1, output_type=tf.int32) == labels, tf.float32)
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        divisor = tf.cast(replicas * tf.shape(labels)[0], tf.float32)
        return tf.reduce_sum(losses) / divisor, tf.reduce_sum(hits) / divisor


def _both(batch) -> dict[str, tf.Tensor]:
    sides = (batch["premise"], batch["hypothesis"])
    return tf.nest.map_structure(lambda *rows: tf.concat(rows, axis=0), *sides)


class InferenceEvaluator(orbit.AbstractEvaluator):
    """Accuracy on pairs in one language, and on those whose sides are in different ones.

    Every worker measures everything, with the same result.
    """

    def __init__(
        self,
        sets: Sequence[InferencePairs],
        labels: Sequence[str],
        encoder: RunEmbedder,
        classifier: tf_keras.layers.Dense,
    ) -> None:
        """Prepares to measure.

        Args:
          sets: what to measure on.
          labels: of the classifier's outputs.
          encoder: embeds with the network that is trained.
          classifier: the one that is trained.
        """
        self._sets = sets
        self._labels = np.array(labels)
        self._encoder = encoder
        self._classifier = classifier

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{"inference": {accuracy, crossed, pairs, by_language: {code: {...}}}}`.

        Accuracies are fractions. `accuracy` is the mean over languages, both sides in the same.
        `crossed` is the mean over languages of the premise, with the hypothesis in the next one of
        its set; it is missing if all sets have one language. `num_steps` is ignored.
        """
        same: dict[str, list[np.ndarray]] = {}
        crossed: dict[str, list[np.ndarray]] = {}
        for pairs in self._sets:
            codes, rights = list(pairs.texts), np.array(pairs.labels)
            sides = {code: self._encode(pairs.texts[code]) for code in codes}
            for code, following in zip(codes, [*codes[1:], codes[0]], strict=True):
                premises, hypotheses = sides[code]
                same.setdefault(code, []).append(self._classify(premises, hypotheses) == rights)
                if following != code:
                    found = self._classify(premises, sides[following][1])
                    crossed.setdefault(code, []).append(found == rights)
        by_language = {
            code: {"accuracy": _share(hits), "pairs": sum(map(len, hits))}
            for code, hits in sorted(same.items())
        }
        for code, hits in crossed.items():
            by_language[code]["crossed"] = _share(hits)
        means = {
            name: float(np.mean([found[name] for found in by_language.values() if name in found]))
            for name in ("accuracy", *(["crossed"] if crossed else []))
        }
        pairs = sum(found["pairs"] for found in by_language.values())
        return {_LABEL: {**means, "pairs": pairs, "by_language": by_language}}

    def _encode(self, texts: Sequence[tuple[str, str]]) -> list[np.ndarray]:
        columns = zip(*texts, strict=True)
        # XNLI has each premise three times.
        found = []
        for column in columns:
            distinct, places = np.unique(np.array(column, object), return_inverse=True)
            found.append(self._encoder.encode(list(distinct))[places])
        return found

    def _classify(self, premises: np.ndarray, hypotheses: np.ndarray) -> np.ndarray:
        logits = self._classifier(pair_vectors(tf.constant(premises), tf.constant(hypotheses)))
        return self._labels[np.argmax(logits, axis=1)]


def _share(hits: Sequence[np.ndarray]) -> float:
    return float(np.concatenate(hits).mean())


def train_inference(
    config: NliRun, run_dir: RunDir, strategy: tf.distribute.Strategy, *, init: Origin
) -> None:
    """Fine-tunes the encoder of `init`, or resumes.

    Raises:
      InputError: if pairs are missing or broken, there is one label only, or dev pairs have others.
    """
    settings = config.nli
    if not settings.corpora:
        raise InputError("'nli.corpora' is empty", remedy="add --set nli.corpora=[DIR]")
    sets = [read_inference_pairs(entry) for entry in settings.corpora]
    labels = labels_of(sets)
    if len(labels) < 2:
        raise InputError(
            f"all pairs of 'nli.corpora' have the label {labels}", remedy="add pairs with others"
        )
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = build_encoder(config.encoder, compute=config.compute, replayable=True)
        fates = restore(init, encoder)
        if strategy.extended.should_checkpoint:
            write_report(fates, init, encoder.variables, run_dir)
        embedder = RunEmbedder(encoder, tokenizer, sequence_length=settings.sequence_length)
        classifier = build_classifier(len(labels), embedder.dim)

    def batches(step: int) -> tf.data.Dataset:
        size = {"batch_size": settings.batch_size, "sequence_length": settings.sequence_length}
        return inference_batches(sets, tokenizer, **size, seed=config.seed, step=step)

    validation = None
    if settings.dev:
        dev = [read_inference_pairs(entry) for entry in settings.dev]
        if unknown := sorted(set(labels_of(dev)) - set(labels)):
            raise InputError(
                f"'nli.dev' has the label '{unknown[0]}', which 'nli.corpora' lacks",
                remedy=f"use the same ones: {', '.join(labels)}",
            )
        validation = Validation(
            InferenceEvaluator(dev, labels, embedder, classifier),
            settings.dev_interval,
            best=tf.train.Checkpoint(encoder=encoder, classifier=classifier),
            measure=(_LABEL, "accuracy"),
        )
    stage = Stage(
        description="fine-tune on inference",
        steps=settings.steps,
        batch_size=settings.batch_size,
        optimizer=settings.optimizer,
        loop=settings.loop,
        checkpoints=run_dir.checkpoints,
    )
    objective = Inference(
        encoder=encoder, classifier=classifier, train_encoder=settings.train_encoder
    )
    fit(objective, batches, stage, run_dir, strategy, validation)
