"""Starts a run in this process: its run dir and its strategy, as the chief or another worker."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import tensorflow as tf

from labse_tf.config import Config
from labse_tf.data import record_counts
from labse_tf.training.distribution import create_strategy, is_chief
from labse_tf.training.runs import run_dir as run_dirs


@contextlib.contextmanager
def launch(
    path: str | os.PathLike[str],
    config: Config,
    *,
    strategy: str = "auto",
    tpu: str = "",
    logical_cpus: int = 0,
    overwrite: bool = False,
) -> Iterator[tuple[run_dirs.RunDir, tf.distribute.Strategy]]:
    """Yields the run dir and the strategy.

    Of several workers, which share the run dir, the chief alone makes it and holds its lock.

    Args:
      path: of the run dir.
      config: resolved.
      strategy: as for `create_strategy`, with `tpu` and `logical_cpus`.
      tpu: see there.
      logical_cpus: see there.
      overwrite: start the run afresh.

    Raises:
      InputError: as `open_or_create` and `create_strategy`.
    """
    settings = {"tpu": tpu, "logical_cpus": logical_cpus}
    if is_chief(strategy):
        with run_dirs.open_or_create(path, config, overwrite=overwrite) as run_dir:
            made = create_strategy(strategy, **settings)
            with record_counts.kept_in(run_dir.counts_file, write=True):
                yield run_dir, made
    else:
        # Making the strategy waits for the chief, which has made the run dir by then.
        made = create_strategy(strategy, **settings)
        run_dir = run_dirs.open_existing(path)
        with record_counts.kept_in(run_dir.counts_file, write=False):
            yield run_dir, made
