"""Hashes that are the same in every process, unlike Python's own."""

from __future__ import annotations

import hashlib

HASH_BYTES = 16


def hash_of(data: bytes) -> bytes:
    """Returns a hash of HASH_BYTES bytes, which determines a record's position in the output."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def random_number_of(data: bytes, seed: int) -> int:
    """Returns a pseudorandom number below 2^64 that depends on the seed.

    Records with the smallest numbers are a uniform sample, whichever worker draws them.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=salt).digest(), "big")
