"""Starts a run in this process, as chief or other worker: its run dir and its strategy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from labse_tf.config import Config
from labse_tf.data import record_counts
from labse_tf.errors import InputError
from labse_tf.files import staging
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

    Several workers share the run dir; only the chief creates it and holds its lock.

    A run dir in a store has a copy on this machine, which the chief sends there: at the start, with
    each checkpoint during training, and at the end. Other workers fetch it.

    Args:
      path: the run dir.
      config: the resolved configuration.
      strategy: as for `create_strategy`, as are `tpu` and `logical_cpus`.
      tpu: see there.
      logical_cpus: see there.
      overwrite: start the run over.

    Raises:
      InputError: as `open_or_create` and `create_strategy` raise.
    """
    settings = {"tpu": tpu, "logical_cpus": logical_cpus}
    path = staging.output_path(path, overwrite=overwrite)
    mirror = staging.mirror_of(Path(path))
    if is_chief(strategy):
        with (
            run_dirs.open_or_create(path, config, overwrite=overwrite) as run_dir,
            _mirrored(mirror, run_dir),
        ):
            made = create_strategy(strategy, **settings)
            with record_counts.kept_in(run_dir.counts_file, write=True):
                yield run_dir, made
    else:
        # Creating the strategy waits for the chief, which has created the run dir by then.
        made = create_strategy(strategy, **settings)
        if mirror is not None:
            mirror.sends = False
            mirror.pull()
        run_dir = run_dirs.open_existing(path)
        with record_counts.kept_in(run_dir.counts_file, write=False):
            yield run_dir, made


@contextlib.contextmanager
def _mirrored(mirror: staging.Mirror | None, run_dir: run_dirs.RunDir) -> Iterator[None]:
    if mirror is None:
        yield
        return
    mirror.claim()
    mirror.push()
    try:
        yield
    except BaseException as error:
        if isinstance(error, InputError) and not run_dir.checkpoints.exists():
            mirror.withdraw()  # A run that could not start must not be in the way.
        else:
            with contextlib.suppress(InputError):
                mirror.push()
        raise
    mirror.push()
