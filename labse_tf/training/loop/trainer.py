"""The trainer: a training step with exact gradients over replicas, and its batches."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence

import orbit
import tensorflow as tf
import tf_keras

from labse_tf.config.shares import check_even, check_parts, check_workers
from labse_tf.data.features import Features
from labse_tf.data.streams import WHOLE, Part
from labse_tf.errors import InputError
from labse_tf.training.optimizer.lazy_adamw import LazyAdamW, sum_rows


class Trainer(orbit.StandardTrainer, abc.ABC):
    """Updates `variables` by the gradient of `replica_loss`.

    A subclass is an objective: it defines the `features` of a batch that it reads, and its loss.

    `replica_loss` is a replica's share of the global loss: the sum over its rows divided by the
    *global* batch. Gradients are summed over the replicas, then clipped, so both loss and update
    equal those of one device with the whole batch.
    """

    def __init__(
        self,
        *,
        strategy: tf.distribute.Strategy,
        optimizer: tf_keras.optimizers.Optimizer,
        variables: Sequence[tf.Variable],
        clip_norm: float,
        dataset,
        lazy_embeddings: bool = True,
        generators: Sequence[tf.random.Generator] = (),
    ) -> None:
        """Prepares to train.

        Args:
          strategy: the strategy under which everything was created.
          optimizer: updates the variables.
          variables: the variables to train.
          clip_norm: the maximum global norm of the gradients; 0 disables clipping.
          dataset: distributed global batches.
          lazy_embeddings: update only the rows of an embedding table that a batch touches; see
            `LazyAdamW`. On TPUs the update is dense, as XLA needs static shapes.
          generators: the generators that dropout uses. They are reset at each step, so that a
            resumed run draws the same numbers as an uninterrupted one.

        Raises:
          ValueError: if there is nothing to train, or a variable occurs twice.
        """
        if not variables:
            raise ValueError("there are no variables to train: call the model once first")
        if len({id(variable) for variable in variables}) < len(variables):
            raise ValueError("a variable is listed twice: it would be updated twice")
        on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        # In a TensorFlow loop a gather must have the same shape in all steps, but batches have
        # different lengths, and sparse gradients have as many rows as the batch has tokens.
        super().__init__(
            dataset,
            orbit.StandardTrainerOptions(
                use_tf_while_loop=on_tpu or strategy.num_replicas_in_sync == 1
            ),
        )
        self._strategy = strategy
        self._optimizer = optimizer
        self._variables = list(variables)
        self._clip_norm = clip_norm
        self._lazy_embeddings = lazy_embeddings and not on_tpu
        self._generators = [(one, one.state.numpy()[-1]) for one in generators]
        self._catches_up = self._lazy_embeddings and isinstance(optimizer, LazyAdamW)
        with strategy.scope():
            optimizer.build(self._variables)
            self._metrics = {
                name: tf_keras.metrics.Mean(name) for name in ("loss", "accuracy", "gradient_norm")
            }
            self.extra_metrics: dict[str, tf_keras.metrics.Mean] = {}
            self._broken_step = tf.Variable(
                -1,
                dtype=tf.int64,
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )

    @property
    @abc.abstractmethod
    def features(self) -> Features:
        """The features of a batch that `replica_loss` reads."""

    def describe_batch(self, step: int) -> str:
        """Returns ` (...)` with the origin of the batch of a step, counted from 1; or ""."""
        return ""

    @abc.abstractmethod
    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns this replica's shares of the global loss and accuracy: two scalars."""

    def replica_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        """Returns `replica_loss` and its gradient with respect to each variable."""
        with tf.GradientTape() as tape:
            loss, accuracy = self.replica_loss(batch)
        gradients = tape.gradient(
            loss, self._variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return loss, accuracy, gradients

    # No code of a step branches on a tensor, and AutoGraph's search takes longer than tracing.
    @tf.autograph.experimental.do_not_convert
    def train_step(self, iterator) -> None:
        self._strategy.run(self._replica_step, args=(next(iterator),))

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        """Returns the tables that may be updated lazily, and the ids that the loss will read."""
        return []

    def _replica_step(self, batch) -> None:
        for generator, key in self._generators:
            # Philox state: a 128-bit counter, of which a step uses the lower half, and the key.
            generator.state.assign(tf.stack([0, self._optimizer.iterations, key]))
        if self._catches_up:
            for table, ids in self.rows_read(batch):
                self._optimizer.catch_up(table, _distinct_over_replicas(ids))
        loss, accuracy, gradients = self.replica_gradients(batch)
        gradients = self._sum_over_replicas(gradients)
        loss, accuracy = sum_over_replicas([loss, accuracy])
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip_norm, use_norm=norm)
        self._optimizer.apply_gradients(
            zip(gradients, self._variables, strict=True), skip_gradients_aggregation=True
        )
        for name, value in (("loss", loss), ("accuracy", accuracy), ("gradient_norm", norm)):
            self._metrics[name].update_state(value)
        # No `if`: a variable shared by replicas must not be assigned inside a branch.
        first_broken = (self._broken_step < 0) & ~(
            tf.math.is_finite(loss) & tf.math.is_finite(norm)
        )
        self._broken_step.assign(
            tf.where(first_broken, self._optimizer.iterations, self._broken_step)
        )
        self.observe(batch, loss, accuracy)

    def observe(self, batch, loss: tf.Tensor, accuracy: tf.Tensor) -> None:
        """Updates `extra_metrics`, the additional metrics of a subclass, after a step.

        Args:
          batch: this replica's part of the batch.
          loss: the loss of the global batch, a scalar.
          accuracy: the accuracy on the global batch, a scalar.
        """
        return None  # AutoGraph warns about a function without a statement.

    def _sum_over_replicas(self, gradients: list) -> list:
        if not self._lazy_embeddings:
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        dense = [one for one in gradients if not isinstance(one, tf.IndexedSlices)]
        summed = iter(sum_over_replicas(dense))
        return [
            _sum_rows_over_replicas(one) if isinstance(one, tf.IndexedSlices) else next(summed)
            for one in gradients
        ]

    def train_loop_begin(self) -> None:
        """Starts the clock; saving and measuring between loops do not count as training time."""
        self._start = (int(self._optimizer.iterations.numpy()), time.perf_counter())

    def train_loop_end(self) -> dict[str, tf.Tensor | float]:
        """Returns the loop's means, steps per second, and the learning rate.

        Raises:
          InputError: if the loss or gradient was not finite, which is never saved as a checkpoint,
            or no gradient reaches the variables.
        """
        if self._broken_step >= 0:
            step = int(self._broken_step)
            raise InputError(
                f"the loss or the gradient of step {step} is not finite{self.describe_batch(step)}",
                remedy="start a run with a lower optimizer.learning_rate or optimizer.clip_norm; "
                "the last good checkpoint, if any, is kept",
            )
        if self._catches_up:
            # Checkpoints and measurements see the weights that AdamW would have.
            with self._strategy.scope():
                self._optimizer.catch_up_all(self._variables)
        first, start = self._start
        speed = (int(self._optimizer.iterations.numpy()) - first) / (time.perf_counter() - start)
        means = {name: metric.result() for name, metric in self._metrics.items()}
        if means["gradient_norm"] == 0.0:
            raise InputError(
                "the gradient is 0: nothing is left to learn, as from copies of one pair, or "
                "the loss does not depend on the variables",
                remedy="give several different texts",
            )
        # A metric that no step of the loop updated has no mean.
        seen = {name: metric for name, metric in self.extra_metrics.items() if metric.count > 0}
        means |= {name: metric.result() for name, metric in seen.items()}
        for metric in (*self._metrics.values(), *self.extra_metrics.values()):
            metric.reset_state()
        learning_rate = self._optimizer.learning_rate.numpy()
        return {**means, "learning_rate": learning_rate, "steps_per_second": speed}


def sum_over_replicas(tensors: list) -> list:
    """Returns the sums over all replicas, in a replica context."""
    replicas = tf.distribute.get_replica_context()
    if replicas.num_replicas_in_sync == 1 or not tensors:
        return tensors
    return replicas.all_reduce("SUM", tensors)


def _distinct_over_replicas(ids: tf.Tensor) -> tf.Tensor:
    ids = tf.reshape(ids, [-1])
    replicas = tf.distribute.get_replica_context()
    if replicas.num_replicas_in_sync > 1:
        ids = replicas.all_gather(ids, axis=0)
    return tf.unique(ids)[0]


def _sum_rows_over_replicas(gradient: tf.IndexedSlices) -> tf.IndexedSlices:
    # An embedding's gradient has one row per occurrence; the norm needs their sum.
    gradient = sum_rows(gradient)
    replicas = tf.distribute.get_replica_context()
    if replicas.num_replicas_in_sync == 1:
        return gradient
    rows = replicas.all_gather(gradient.indices, axis=0)
    values = replicas.all_gather(gradient.values, axis=0)
    return sum_rows(tf.IndexedSlices(values, rows, gradient.dense_shape))


def distribute(
    strategy: tf.distribute.Strategy,
    make_dataset: Callable[[Part], tf.data.Dataset],
    batch_size: int,
    *,
    parts: int = 1,
):
    """Returns the distributed dataset: each replica gets its slice of every global batch.

    Row i is on the same replica for any number of workers. With one part, every worker makes the
    same global batches and keeps its replicas' rows. With several, a worker makes its share of the
    parts alone, of which a batch has the rows one after the other.

    Args:
      strategy: the run's strategy.
      make_dataset: returns the batches, or a part of each.
      batch_size: rows of the global batch. 0: batches have different numbers of rows, which the
        caller makes multiples of the number of replicas; only with one part.
      parts: the number of parts.

    Raises:
      InputError: if the replicas cannot share the batch evenly, or workers the parts.
    """
    replicas = strategy.num_replicas_in_sync
    check_even(batch_size, replicas)
    check_parts(batch_size, parts)
    if replicas == 1:
        return strategy.experimental_distribute_dataset(_joined(make_dataset, 0, parts, parts))

    def make(context: tf.distribute.InputContext) -> tf.data.Dataset:
        pipelines, number = context.num_input_pipelines, context.input_pipeline_id
        local = replicas // pipelines
        if parts == 1:
            dataset, first, slots = make_dataset(WHOLE), local * number, replicas
        else:
            check_workers(parts, pipelines)
            own = parts // pipelines
            dataset, first, slots = _joined(make_dataset, own * number, own, parts), 0, local

        def slices(tensor):
            # The batches of joint tasks have sizes of their own.
            known = tensor.shape[0] or (batch_size if parts == 1 else 0)
            rows = (known or tf.shape(tensor)[0]) // slots
            shape = [slots, rows, *tensor.shape[1:]]
            split = tf.reshape(tensor, [-1 if size is None else size for size in shape])
            return split[first : first + local]

        def split(*batch):
            batch = tf.nest.map_structure(slices, batch)
            return batch if len(batch) > 1 else batch[0]

        return dataset.map(split).unbatch()

    return strategy.distribute_datasets_from_function(make)


def _joined(
    make_dataset: Callable[[Part], tf.data.Dataset], first: int, count: int, parts: int
) -> tf.data.Dataset:
    """Returns `count` parts of each batch, from `first` on, as one, padded to the longest."""
    if count == 1:
        return make_dataset(Part(first, parts))
    datasets = [make_dataset(Part(first + number, parts)) for number in range(count)]
    return tf.data.Dataset.zip(tuple(datasets)).map(
        lambda *batches: tf.nest.map_structure(_concatenate, *batches)
    )


def _concatenate(*tensors: tf.Tensor) -> tf.Tensor:
    """Returns the rows of all tensors, their last dimension filled up with zeros."""
    lengths = {tensor.shape[-1] for tensor in tensors}
    if tensors[0].shape.rank > 1 and (len(lengths) > 1 or None in lengths):
        longest = tf.reduce_max([tf.shape(tensor)[-1] for tensor in tensors])
        before = [[0, 0]] * (tensors[0].shape.rank - 1)
        tensors = [
            tf.pad(tensor, [*before, [0, longest - tf.shape(tensor)[-1]]]) for tensor in tensors
        ]
    return tf.concat(tensors, axis=0)
