"""Hashes that are the same in every process, unlike Python's own."""

from __future__ import annotations

import hashlib


def hash_of(data: bytes) -> bytes:
    """Returns 16 bytes: where a record stands in the output."""
    return hashlib.blake2b(data, digest_size=16).digest()


def random_number_of(data: bytes, seed: int) -> int:
    """Returns a number below 2^64, as good as random and another one for another seed.

    Records with the smallest numbers are a uniform sample, whichever worker draws them.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=salt).digest(), "big")
