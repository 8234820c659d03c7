"""Validation during training: what is measured and when, which checkpoint is best, when to stop."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import orbit
import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.data.held_out import BytesPair, HeldOut, read_dev_pairs
from labse_tf.embedding.light import SortingEncoder
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import accuracies, all_cosines
from labse_tf.evaluation.task import Task, find_task, primary_figure
from labse_tf.model.encoder import embed
from labse_tf.model.mlm_head import Slots, token_states
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.model.static_encoder import StaticEncoder
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.training.distribution import (
    checkpoint_options,
    cross_replica_concat,
    from_first_replica,
)
from labse_tf.training.runs.checkpoints import DEV_PAIRS, Chosen, find_damage, read_best, save_best

_TOKENS_PER_BATCH = 8192

_log = logging.getLogger("labse")


@dataclasses.dataclass(frozen=True)
class Validation:
    """Measurements during training.

    Attributes:
      evaluator: its `evaluate` returns `{task: {metric: number, ...}}`; None: there are none.
      interval: steps between measurements; there is also one at the end.
      best: what to save at the step with the best measure; None saves nothing.
      measure: the task and metric that select the best step.
      lower_is_better: whether the lowest measure is the best.
      patience: the run stops after this many measurements without improvement; 0 never stops.
    """

    evaluator: orbit.AbstractEvaluator | None = None
    interval: int = 0
    best: tf.train.Checkpoint | None = None
    measure: tuple[str, str] = ("", "")
    lower_is_better: bool = False
    patience: int = 0


class Course:
    """The measurements of a run so far, including those before a resume.

    All workers have the same, and decide alike: they compare the first worker's measurements.
    """

    def __init__(
        self,
        validation: Validation,
        *,
        strategy: tf.distribute.Strategy,
        step: tf.Variable,
        steps: int,
        measured: set[int],
        checkpoints: Path,
        own_folder: Path,
    ) -> None:
        """Continues a run of `steps` steps that has already measured after those `measured`.

        The best checkpoint is read from `checkpoints`; each worker saves to its `own_folder`, which
        is the same folder for the chief.
        """
        self._validation, self._strategy, self._own_folder = validation, strategy, own_folder
        self._step, self.steps, self._measured = step, steps, set(measured)
        self.best = None if validation.best is None else _find_best(checkpoints)

    @property
    def is_over(self) -> bool:
        """Whether patience is exhausted."""
        return bool(self._validation.patience) and self.waited >= self._validation.patience

    @property
    def waited(self) -> int:
        """Measurements since the best one."""
        # The best may be from a step that the run, resumed from an older checkpoint, will repeat.
        return sum(self.best is not None and step > self.best.step for step in self._measured)

    def is_finished(self, step: int) -> bool:
        """Whether nothing is left to train or to measure after `step`."""
        return self.is_over or (step >= self.steps and not self.is_due(step))

    def is_due(self, step: int) -> bool:
        """Whether to measure after `step`."""
        interval = self._validation.interval
        if not interval or step in self._measured:
            return False
        return step == self.steps or step > 0 and step % interval == 0

    def next_due(self, step: int) -> int:
        """Returns the next step after which to measure, or the last."""
        # Counted from 0, not from `step`, so that a resumed run measures at the same steps.
        interval = self._validation.interval or self.steps
        return min(self.steps, (step // interval + 1) * interval)

    def note(self, output: dict) -> None:
        """Records the evaluator's output; saves the checkpoint if it is the best."""
        step = int(self._step.numpy())
        self._measured.add(step)
        if self._validation.best is None:
            return
        task, metric = self._validation.measure
        accuracy = float(from_first_replica(self._strategy, output[task][metric]))
        sign = -1 if self._validation.lower_is_better else 1
        if self.best is None or sign * accuracy > sign * self.best.accuracy:
            options = checkpoint_options(self._strategy)
            found = {"step": step, "accuracy": accuracy, "task": task}
            self.best = save_best(self._validation.best, self._own_folder, **found, options=options)

    def tell_end(self, description: str) -> None:
        """Logs whether the run, called `description`, stopped early, and its best checkpoint."""
        step, best = int(self._step.numpy()), self.best
        if best is None:
            return
        if self.is_over and step < self.steps:
            text = "%s: stopped at step %d of %d: %d measurements without improvement"
            _log.info(text, description, step, self.steps, self.waited)
        text = "%s: the best checkpoint is from step %d, %s"
        _log.info(text, description, best.step, best.describe())


def _find_best(checkpoints: Path) -> Chosen | None:
    try:
        best = read_best(checkpoints)
    except InputError as error:
        _log.warning("%s", error)
        return None
    if best is not None and (damage := find_damage(best.path)):
        _log.warning("%s is damaged (%s): the next measurement counts as best", best.path, damage)
        return None
    return best


def validation_of(
    settings: TrainConfig,
    *,
    languages: Sequence[str],
    strategy: tf.distribute.Strategy,
    encoder: EncoderNetwork,
    tokenizer: Tokenizer,
) -> Validation | None:
    """Returns the validation that `settings` ask for, None if they ask for none.

    Dev pairs of other `languages` (codes; an empty list means all) are left out. The best
    checkpoint contains the `encoder`, which is the one that is trained. Raises InputError if there
    are no dev pairs, a task does not exist or occurs twice, or its data is missing.
    """
    evaluator, measures, lower = None, {}, False
    if settings.dev:
        pools = read_dev_pairs(settings, languages)
        made = {"strategy": strategy, "encoder": encoder, "tokenizer": tokenizer}
        evaluator = DevEvaluator(**made, pools=pools, lengths=settings.bucket_lengths)
        measures[DEV_PAIRS] = "accuracy"
    tasks: dict[str, tuple[Task, str]] = {}
    for name, data in (entry.split("=", 1) for entry in settings.evaluate):
        if name in tasks or name in measures:
            problem = f"'train.evaluate' and 'train.dev' have the task {name} twice"
            raise InputError(problem, remedy="leave one out")
        tasks[name] = find_task(name), data
        if not os.path.exists(data):
            problem = "no such file or folder, named in 'train.evaluate'"
            raise InputError(problem, path=data, remedy="check the path")
    if tasks:
        embedder = RunEmbedder(encoder, tokenizer, sequence_length=settings.bucket_lengths[-1])
        evaluator = TaskEvaluator(evaluator, tasks, embedder)
        measures |= {name: task.PRIMARY_METRIC for name, (task, _) in tasks.items()}
    if evaluator is None:
        return None
    chosen = settings.best or next(iter(measures))
    if chosen not in measures:
        raise InputError(f"'train.best' is {chosen!r}", remedy=f"choose from {', '.join(measures)}")
    if chosen in tasks:
        lower = getattr(tasks[chosen][0], "LOWER_IS_BETTER", False)
    return Validation(
        evaluator,
        settings.dev_interval,
        best=tf.train.Checkpoint(encoder=encoder),
        measure=(chosen, measures[chosen]),
        lower_is_better=lower,
        patience=settings.patience,
    )


class RunEmbedder(SortingEncoder):
    """An encoder (`encode(list of str)`) made of a network and its tokeniser."""

    def __init__(
        self, network: EncoderNetwork, tokenizer: Tokenizer, *, sequence_length: int
    ) -> None:
        """Traces the network once, for batches of any shape; longer texts are truncated."""
        self._tokenizer = tokenizer
        self._run = tf.function(
            lambda inputs: tf.cast(network(inputs, training=False)["pooled_output"], tf.float32),
            input_signature=[ENCODER_INPUTS],
        )
        self.dim = self._run.get_concrete_function().structured_outputs.shape[1]
        self.sequence_length = sequence_length
        if isinstance(network, StaticEncoder):
            self._has_no_layers()

    def _tokenize(self, texts: Sequence[str]) -> tf.RaggedTensor:
        return self._tokenizer(tf.constant(texts))

    def _embed(self, tokens: tf.RaggedTensor, rows: np.ndarray, length: int) -> np.ndarray:
        packed = self._tokenizer.pack([tf.gather(tokens, rows)], tf.constant(length))
        return self._run(packed).numpy()


class DevEvaluator(orbit.AbstractEvaluator):
    """Retrieves each sentence's translation from the pool of its language, in both directions."""

    def __init__(
        self,
        *,
        strategy: tf.distribute.Strategy,
        encoder,
        tokenizer: Tokenizer,
        pools: dict[str, list[BytesPair]],
        lengths: Sequence[int],
    ) -> None:
        """Tokenises `pools`, pairs by language, as `read_dev_pairs` returns them.

        Sentences are padded to the smallest of `lengths` (tokens, ascending) that holds them, and
        truncated to the last one. The encoder was created under the strategy.
        """
        self._strategy, self._encoder, self._tokenizer = strategy, encoder, tokenizer
        # Many languages share English sentences; each is embedded once.
        sentences = {text: None for pool in pools.values() for pair in pool for text in pair}
        row_of = {text: row for row, text in enumerate(sentences)}
        self._rows = {
            language: np.array([[row_of[text] for text in pair] for pair in pool])
            for language, pool in pools.items()
        }
        self._tokens = tokenizer(tf.constant(list(sentences)))
        longest = np.minimum(self._tokens.row_lengths().numpy() + 2, lengths[-1])
        self._lengths = np.asarray(lengths)[np.searchsorted(lengths, longest)]

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{"retrieval": {accuracy, to_english, from_english, pairs, by_language}}`.

        Accuracies are fractions of the pairs; `accuracy` is the mean of both directions. Overall
        accuracies are means over languages. `num_steps` is ignored: all pairs are measured.
        """
        vectors = self.embed_all()
        by_language = {}
        for language, rows in self._rows.items():
            found = accuracies(all_cosines(vectors[rows[:, 1]], vectors[rows[:, 0]]))
            mean = round(float(np.mean(list(found.values()))), 6)
            by_language[language] = {"accuracy": mean, **found, "pairs": len(rows)}
        means = {
            name: round(float(np.mean([one[name] for one in by_language.values()])), 6)
            for name in ("accuracy", "to_english", "from_english")
        }
        pairs = sum(map(len, self._rows.values()))
        return {DEV_PAIRS: {**means, "pairs": pairs, "by_language": by_language}}

    def embed_all(self) -> np.ndarray:
        """Returns float32 `[sentences, dim]`, unit rows, one per distinct sentence of the pools."""
        parts, order = [], []
        for length, rows, padded_rows in self._batches():
            packed = self._tokenizer.pack([tf.gather(self._tokens, padded_rows)], length)
            parts.append(self._embed(packed).numpy()[: len(rows)])
            order.append(rows)
        vectors = np.concatenate(parts)
        return vectors[np.argsort(np.concatenate(order))]

    def _batches(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields length, rows, and rows padded so that all batches of a length have one shape."""
        replicas = self._strategy.num_replicas_in_sync
        for length in np.unique(self._lengths):
            rows = np.flatnonzero(self._lengths == length)
            most = max(1, _TOKENS_PER_BATCH // length // replicas)
            size = replicas * min(most, math.ceil(len(rows) / replicas))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                yield int(length), some, np.pad(some, (0, size - len(some)), mode="edge")

    @tf.function
    def _embed(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Embeds a batch, split over the replicas; returns `[rows, dim]` on every worker."""
        everywhere = self._strategy.run(self._embed_part, args=(batch,))
        return self._strategy.experimental_local_results(everywhere)[0]

    def _embed_part(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        replicas, index = context.num_replicas_in_sync, context.replica_id_in_sync_group

        def part(tensor):
            split = tf.reshape(tensor, [replicas, tensor.shape[0] // replicas, tensor.shape[1]])
            return split[index]

        vectors = embed(self._encoder, tf.nest.map_structure(part, batch), training=False)
        return cross_replica_concat(vectors)


class HeldOutEvaluator(orbit.AbstractEvaluator):
    """Loss and accuracy on masked tokens of held-out sequences, always with the full softmax."""

    def __init__(
        self, *, strategy, encoder, head, examples: dict[str, HeldOut], slots: Slots | None = None
    ) -> None:
        """Takes a model made under `strategy`, and `examples` by task, of CMLM if it has slots."""
        self._strategy, self._examples = strategy, examples
        self._encoder, self._head, self._slots = encoder, head, slots

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{task: {loss, accuracy, tokens, by_language: {code: {...}}}}`.

        The loss is in nats per token. `num_steps` is ignored: all examples are measured.
        """
        return {task: self._measure(examples) for task, examples in self._examples.items()}

    def _measure(self, examples: HeldOut) -> dict:
        batches = examples.batches(self._head.bias.shape[0])
        rows = np.concatenate([self._sums(batch) for batch in batches])
        rows = rows[: len(examples.languages)]
        by_language = {
            str(language): _means(rows[examples.languages == language])
            for language in np.unique(examples.languages)
        }
        return {**_means(rows), "by_language": by_language}

    def _sums(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        # Each replica computes the same; a few hundred sentences are not worth splitting.
        tensors = tf.nest.map_structure(tf.constant, batch)
        sums = self._strategy.run(self._row_sums, args=(tensors,))
        return self._strategy.experimental_local_results(sums)[0].numpy()

    @tf.function
    def _row_sums(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns loss, correct predictions and number of masked tokens per row: `[rows, 3]`."""
        sequence = token_states(self._encoder, batch, slots=self._slots, training=False)
        logits = tf.cast(self._head(sequence, batch["masked_positions"]), tf.float32)
        ids, weights = batch["masked_ids"], batch["masked_weights"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == ids, tf.float32)
        sums = [tf.reduce_sum(one * weights, axis=1) for one in (losses, hits)]
        return tf.stack([*sums, tf.reduce_sum(weights, axis=1)], axis=1)


def _means(rows: np.ndarray) -> dict[str, float]:
    loss, hits, tokens = rows.sum(axis=0, dtype=np.float64)
    return {"loss": loss / tokens, "accuracy": hits / tokens, "tokens": int(tokens)}


class TaskEvaluator(orbit.AbstractEvaluator):
    """Measures the dev pairs and each task's primary metric; every worker, with the same result."""

    def __init__(
        self, dev: DevEvaluator | None, tasks: Mapping[str, tuple[Task, str]], encoder: Encoder
    ) -> None:
        """Takes the tasks and their data by name."""
        self._dev, self._tasks, self._encoder = dev, tasks, encoder

    def evaluate(self, num_steps: tf.Tensor) -> dict[str, dict]:
        """Returns `{name: {primary metric: value}}`, and what `dev` returns."""
        return (self._dev.evaluate(num_steps) if self._dev else {}) | {
            name: {task.PRIMARY_METRIC: primary_figure(task, task.evaluate(self._encoder, data))}
            for name, (task, data) in self._tasks.items()
        }
