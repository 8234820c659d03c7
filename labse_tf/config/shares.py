"""Checks that replicas, chunks and parts of the input can share a batch evenly."""

from __future__ import annotations

from labse_tf.errors import InputError


def check_even(batch_size: int, replicas: int) -> None:
    """Raises InputError if the replicas cannot share a batch evenly."""
    if batch_size % replicas:
        problem = f"a batch of {batch_size} cannot be split evenly over {replicas} replicas"
        raise InputError(problem, remedy=f"set 'batch_size' to a multiple of {replicas}")


def check_chunks(local_batch: int, chunk_size: int) -> None:
    """Raises InputError if a replica's batch cannot be cut into chunks; a size of 0 is none."""
    if chunk_size and local_batch % chunk_size:
        problem = f"a replica's batch of {local_batch} does not split into chunks of {chunk_size}"
        raise InputError(problem, remedy=f"set 'chunk_size' to a divisor of {local_batch}")


def check_parts(batch_size: int, parts: int) -> None:
    """Raises InputError if a batch cannot be made of equal parts."""
    if parts > 1 and batch_size % parts:
        problem = f"a batch of {batch_size} cannot be made of {parts} equal parts"
        remedy = f"set 'batch_size' to a multiple of {parts}, or change 'input_parts'"
        raise InputError(problem, remedy=remedy)


def check_workers(parts: int, workers: int) -> None:
    """Raises InputError if the workers cannot share the parts of the input evenly."""
    if parts % workers:
        problem = f"{parts} parts of the input cannot be shared evenly by {workers} workers"
        remedy = f"set 'input_parts' to a multiple of {workers}, or to 1: each worker reads all"
        raise InputError(problem, remedy=remedy)
