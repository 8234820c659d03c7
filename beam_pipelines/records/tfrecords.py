"""TFRecord files without TensorFlow: a length, its checksum, the data, its checksum.

The checksum is CRC-32C. Beam's own TFRecord code tells neither which record is damaged nor how.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import google_crc32c
import numpy as np

# A longer record is treated as damage, and no memory is allocated for it: 1 GiB.
_MAX_RECORD_BYTES = 1 << 30
# What comes before the data: their length, and its checksum.
HEADER_BYTES = 12


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    # TFRecord stores checksums rotated and shifted, so that data containing checksums stays safe.
    masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8
    return (masked & 0xFFFFFFFF).to_bytes(4, "little")


def are_headers(data: bytes) -> np.ndarray:
    """Returns whether a record can begin at each place of `data`: `[len(data) - 11]` bool."""
    if len(data) < HEADER_BYTES:
        return np.zeros(0, bool)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)
    # The upper half of a length that is not too large is zero.
    found = ~windows[:, 4:8].any(axis=1)
    for place in map(int, np.flatnonzero(found)):
        header = data[place : place + HEADER_BYTES]
        found[place] = _checksum(header[:8]) == header[8:]
    return found


def write_records(stream: BinaryIO, records: Sequence[bytes]) -> None:
    """Writes the records to a binary stream in TFRecord framing."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += (length, _checksum(length), record, _checksum(record))
    # In one write: compressors are slow with small ones.
    stream.write(b"".join(parts))


def read_records(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the records of a binary stream in TFRecord framing, checksums verified.

    Raises:
      ValueError: if a record is damaged or cut off, after the records before it; the message gives
        its number. Errors of the stream are also raised after the records before them.
    """
    number = 0
    while header := stream.read(HEADER_BYTES):
        number += 1
        whole = len(header) == HEADER_BYTES
        length = struct.unpack("<Q", header[:8])[0] if whole else _MAX_RECORD_BYTES + 1
        if length > _MAX_RECORD_BYTES:
            raise ValueError(f"record {number} is damaged")
        data, checksum = stream.read(length), stream.read(4)
        if len(checksum) < 4:
            raise ValueError(f"record {number} is cut off")
        if _checksum(header[:8]) != header[8:] or _checksum(data) != checksum:
            raise ValueError(f"record {number} has a wrong checksum")
        yield data
