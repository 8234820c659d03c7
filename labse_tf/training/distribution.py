"""Strategies by name, and the gather that makes the whole global batch serve as negatives."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy.typing as npt
import tensorflow as tf

from labse_tf.errors import InputError

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")

# Where Linux lists what is on the PCI bus, and by which ids a chip of a TPU is known there (those
# that JAX looks for): v2 and v3, one without a public name, v4, v5p, v5e, v6e, 7x.
_PCI_DEVICES = Path("/sys/bus/pci/devices")
_GOOGLE = "0x1ae0"
_TPU_CHIPS = ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")

_log = logging.getLogger("labse")


def checkpoint_options(strategy: tf.distribute.Strategy) -> tf.train.CheckpointOptions:
    """Returns how to save and to restore weights under this strategy.

    The hosts of a TPU pod have disks of their own, and weights are on all of them: the process that
    runs the command reads and writes them all.
    """
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    return tf.train.CheckpointOptions(experimental_io_device="/job:localhost" if is_tpu else None)


def create_strategy(
    name: str = "auto", *, tpu: str = "", logical_cpus: int = 0
) -> tf.distribute.Strategy:
    """Returns the strategy called `name`.

    "auto" means TPU if `tpu` is given, multi-worker if the environment has TF_CONFIG, TPU on a TPU
    VM, mirrored if there are several GPUs, else one device.

    Args:
      name: one of STRATEGIES.
      tpu: the TPU's name or address; "local" for a TPU VM.
      logical_cpus: with "mirrored", the number of logical CPU devices to mirror over, to try
        several replicas on a machine without GPUs. Works only before TensorFlow has initialised
        its devices.

    Raises:
      InputError: if the name is unknown or the machine does not have what it needs.
    """
    if name not in STRATEGIES:
        raise InputError(f"no strategy '{name}'", remedy=f"use one of {', '.join(STRATEGIES)}")
    if logical_cpus and name != "mirrored":
        raise InputError(
            f"--logical-cpus does nothing with --strategy {name}", remedy="add --strategy mirrored"
        )
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
            raise InputError(
                "several workers need TF_CONFIG in the environment",
                remedy="set it to the cluster's addresses and this worker's index",
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_logical_cpus(logical_cpus))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


def _choose(tpu: str, gpus: int) -> str:
    if tpu:
        return "tpu"
    if "TF_CONFIG" in os.environ:
        return "multi_worker"
    if chips := count_tpu_chips():
        if importlib.util.find_spec("libtpu"):
            return "tpu"
        text = "this machine has %d TPU chips, but no TensorFlow that can use them: docs/install.md"
        _log.warning(text, chips)
    return "mirrored" if gpus > 1 else "one_device"


def count_tpu_chips() -> int:
    """Returns the number of TPU chips on this machine's PCI bus; TensorFlow is not asked."""
    chips = 0
    for device in _PCI_DEVICES.glob("*"):
        with contextlib.suppress(OSError):
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "device"))
            chips += vendor == _GOOGLE and kind in _TPU_CHIPS
    return chips


def _logical_cpus(count: int) -> list[str] | None:
    if not count:
        return None
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError as error:
        # TensorFlow is already initialised, which is fine if it has enough devices.
        if len(tf.config.list_logical_devices("CPU")) < count:
            raise InputError(
                f"TensorFlow has started with fewer than {count} logical CPUs",
                remedy="start a new process",
            ) from error
    return [f"/cpu:{index}" for index in range(count)]


def cross_replica_concat(rows: tf.Tensor) -> tf.Tensor:
    """Returns the rows of all replicas, in replica order; gradients flow back to each.

    Args:
      rows: `[batch, dim]` tensor, in a replica context; `batch` equal on all replicas.

    Returns:
      `[replicas * batch, dim]` tensor.
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return rows
    # A tensor straight from the input is not on a device yet; multi-worker gathers need one.
    gathered = context.all_gather(tf.identity(rows), axis=0)
    # Gathers forget it; with it, all shapes after them are known if those of the batch are.
    batch = rows.shape[0]
    known = None if batch is None else context.num_replicas_in_sync * batch
    gathered.set_shape([known, *rows.shape[1:]])
    return gathered


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
    """Within this context, losing one of several workers raises InputError.

    TensorFlow notices the broken connection, or finds out within a minute by polling.
    """
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
    """Returns whether this process creates the run dir; needs no strategy.

    With several workers that is the task `chief` if TF_CONFIG has one, else the first worker.

    Args:
      strategy_name: as for `create_strategy`.
    """
    if strategy_name not in ("auto", "multi_worker") or "TF_CONFIG" not in os.environ:
        return True
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type is None:
        return True
    chief = "chief" if "chief" in resolver.cluster_spec().jobs else "worker"
    return (resolver.task_type, resolver.task_id) == (chief, 0)
