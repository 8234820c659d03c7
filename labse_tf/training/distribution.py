"""Strategies by name, the input of their replicas, and what replicas sum or gather."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator

import numpy.typing as npt
import tensorflow as tf

from labse_tf.config.shares import check_even, check_parts, check_workers
from labse_tf.data.streams import Part
from labse_tf.errors import InputError

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def checkpoint_options(strategy: tf.distribute.Strategy) -> tf.train.CheckpointOptions:
    """Returns how to save and to restore weights under this strategy."""
    # Each host of a TPU pod has a disk and weights of its own: the process that runs the command
    # reads and writes them all.
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    return tf.train.CheckpointOptions(experimental_io_device="/job:localhost" if is_tpu else None)


def create_strategy(
    name: str = "auto", *, tpu: str = "", logical_cpus: int = 0
) -> tf.distribute.Strategy:
    """Returns the strategy called `name`.

    "auto" means TPU if `tpu` is given, multi-worker if the environment has TF_CONFIG, TPU if
    `libtpu` is installed, mirrored if there are several GPUs, else one device.

    Args:
      name: one of STRATEGIES.
      tpu: the TPU's name or address; "local" for a TPU VM.
      logical_cpus: with "mirrored", the number of logical CPU devices to mirror over, to try
        several replicas without GPUs; only before TensorFlow has initialised its devices.

    Raises:
      InputError: if the name is unknown or the machine does not have what it needs.
    """
    if name not in STRATEGIES:
        raise InputError(f"no strategy '{name}'", remedy=f"use one of {', '.join(STRATEGIES)}")
    if logical_cpus and name != "mirrored":
        problem = f"--logical-cpus does nothing with --strategy {name}"
        raise InputError(problem, remedy="add --strategy mirrored")
    gpus = tf.config.list_physical_devices("GPU")
    if name == "auto":
        name = _choose(tpu, len(gpus))
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    if name == "multi_worker":
        if "TF_CONFIG" not in os.environ:
            remedy = "set it to the cluster's addresses and this worker's index"
            raise InputError("several workers need TF_CONFIG in the environment", remedy=remedy)
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_logical_cpus(logical_cpus))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


def _choose(tpu: str, gpus: int) -> str:
    if tpu:
        return "tpu"
    if "TF_CONFIG" in os.environ:
        return "multi_worker"
    if importlib.util.find_spec("libtpu"):
        return "tpu"
    return "mirrored" if gpus > 1 else "one_device"


def _logical_cpus(count: int) -> list[str] | None:
    if not count:
        return None
    cpu = tf.config.list_physical_devices("CPU")[0]
    with contextlib.suppress(RuntimeError):  # TensorFlow has started, perhaps with enough devices.
        devices = [tf.config.LogicalDeviceConfiguration()] * count
        tf.config.set_logical_device_configuration(cpu, devices)
    if len(tf.config.list_logical_devices("CPU")) < count:
        problem = f"TensorFlow has started with fewer than {count} logical CPUs"
        raise InputError(problem, remedy="start a new process")
    return [f"/cpu:{index}" for index in range(count)]


def cross_replica_concat(rows: tf.Tensor) -> tf.Tensor:
    """Returns the rows of all replicas, in replica order; gradients flow back to each.

    In a replica context; `[batch, dim]`, with the same batch on all replicas, gives
    `[replicas * batch, dim]`.
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return rows
    # A tensor straight from the input is not on a device yet; multi-worker gathers need one.
    gathered = context.all_gather(tf.identity(rows), axis=0)
    # Gathers forget it; with it, all later shapes are known if the shapes of the batch are.
    batch = rows.shape[0]
    known = None if batch is None else context.num_replicas_in_sync * batch
    gathered.set_shape([known, *rows.shape[1:]])
    return gathered


def sum_over_replicas(tensors: list) -> list:
    """Returns the sums over all replicas, in a replica context.

    The sum of gradients of a table, `tf.IndexedSlices`, has each row once.
    """
    replicas = tf.distribute.get_replica_context()
    several = replicas.num_replicas_in_sync > 1
    dense = [one for one in tensors if not isinstance(one, tf.IndexedSlices)]
    dense = iter(replicas.all_reduce("SUM", dense) if several and dense else dense)

    def sum_sparse(one: tf.IndexedSlices) -> tf.IndexedSlices:
        # An embedding's gradient has one row per occurrence; its norm needs their sum.
        one = sum_rows(one)
        if not several:
            return one
        rows, values = (replicas.all_gather(part, 0) for part in (one.indices, one.values))
        return sum_rows(tf.IndexedSlices(values, rows, one.dense_shape))

    return [
        sum_sparse(one) if isinstance(one, tf.IndexedSlices) else next(dense) for one in tensors
    ]


def sum_rows(gradient: tf.IndexedSlices) -> tf.IndexedSlices:
    """Returns the gradient with duplicate rows summed."""
    rows, place = tf.unique(gradient.indices)
    values = tf.cond(
        tf.size(rows) == tf.size(place),
        lambda: gradient.values,
        lambda: tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows)),
    )
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def distinct_over_replicas(ids: tf.Tensor) -> tf.Tensor:
    """Returns the distinct ids of all replicas, `[n]`, in a replica context."""
    ids = tf.reshape(ids, [-1])
    replicas = tf.distribute.get_replica_context()
    if replicas.num_replicas_in_sync > 1:
        ids = replicas.all_gather(ids, axis=0)
    return tf.unique(ids)[0]


def from_first_replica(strategy: tf.distribute.Strategy, value: npt.ArrayLike) -> npt.ArrayLike:
    """Returns on every worker the value of the first replica's worker, as float32.

    Workers that base decisions on it agree even if rounding differs between their machines.
    """
    if strategy.num_replicas_in_sync == 1:
        return value

    def pick(value):
        context = tf.distribute.get_replica_context()
        is_first = tf.equal(context.replica_id_in_sync_group, 0)
        return context.all_reduce("SUM", tf.where(is_first, value, tf.zeros_like(value)))

    @tf.function
    def pick_everywhere(value):
        return strategy.experimental_local_results(strategy.run(pick, args=(value,)))[0]

    return pick_everywhere(tf.constant(value, tf.float32)).numpy()


@contextlib.contextmanager
def worker_errors(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Within this context, losing one of several workers raises InputError, within a minute."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            raise
        raise InputError(
            "another worker has ended or cannot be reached",
            remedy="see its log, and start all workers again with the same commands: the run "
            "resumes from its last checkpoint, if there is one",
        ) from error


def is_chief(strategy_name: str) -> bool:
    """Returns whether this process creates the run dir; `strategy_name` as for `create_strategy`.

    With several workers that is the task `chief` if TF_CONFIG has one, else the first worker.
    """
    if strategy_name not in ("auto", "multi_worker") or "TF_CONFIG" not in os.environ:
        return True
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type is None:
        return True
    chief = "chief" if "chief" in resolver.cluster_spec().jobs else "worker"
    return (resolver.task_type, resolver.task_id) == (chief, 0)


def distribute(
    strategy: tf.distribute.Strategy,
    make_dataset: Callable[..., tf.data.Dataset],
    batch_size: int,
    *,
    parts: int = 1,
):
    """Returns the distributed dataset: each replica gets its slice of every global batch.

    Row i is on the same replica for any number of workers. With one part, every worker makes the
    same global batches and keeps its replicas' rows. With several, a worker makes only its share of
    the parts, whose rows follow each other in a batch.

    Args:
      strategy: the run's strategy.
      make_dataset: returns the batches; with several parts, called with a `Part` of each batch.
      batch_size: rows of the global batch. 0: batches have different numbers of rows, multiples of
        the number of replicas; only with one part.
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
            dataset, first, slots = make_dataset(), local * number, replicas
        else:
            check_workers(parts, pipelines)
            own = parts // pipelines
            dataset, first, slots = _joined(make_dataset, own * number, own, parts), 0, local

        def split(tensor):
            # The batches of joint tasks have sizes of their own.
            known = tensor.shape[0] or (batch_size if parts == 1 else 0)
            rows = (known or tf.shape(tensor)[0]) // slots
            shape = [slots, rows, *tensor.shape[1:]]
            split = tf.reshape(tensor, [-1 if size is None else size for size in shape])
            return split[first : first + local]

        return dataset.map(lambda batch: tf.nest.map_structure(split, batch)).unbatch()

    return strategy.distribute_datasets_from_function(make)


def _joined(
    make_dataset: Callable[..., tf.data.Dataset], first: int, count: int, parts: int
) -> tf.data.Dataset:
    """Returns `count` parts of each batch, from `first` on, as one.

    The last dimension of all tensors is filled up with zeros to the longest.
    """
    if parts == 1:
        return make_dataset()
    datasets = [make_dataset(Part(first + number, parts)) for number in range(count)]

    def concatenate(*tensors: tf.Tensor) -> tf.Tensor:
        lengths = {tensor.shape[-1] for tensor in tensors}
        if tensors[0].shape.rank > 1 and (len(lengths) > 1 or None in lengths):
            longest = tf.reduce_max([tf.shape(one)[-1] for one in tensors])
            before = [[0, 0]] * (tensors[0].shape.rank - 1)
            tensors = [tf.pad(one, [*before, [0, longest - tf.shape(one)[-1]]]) for one in tensors]
        return tf.concat(tensors, axis=0)

    if count == 1:
        return datasets[0]
    zipped = tf.data.Dataset.zip(tuple(datasets))
    return zipped.map(lambda *batches: tf.nest.map_structure(concatenate, *batches))
