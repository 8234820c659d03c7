"""TFRecord files without TensorFlow: a length, its checksum, the data, its checksum.

The checksum is CRC-32C. Beam's own TFRecord code needs a library for it that is not among our
requirements, and plain Python takes a second for a few megabytes. Here NumPy computes it for many
records at once, one byte of each per step.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

# A longer record is treated as damage, and no memory is allocated for it: 1 GiB.
_MAX_RECORD_BYTES = 1 << 30
_RECORDS_AT_ONCE = 1000
# What comes before the data: their length, and its checksum.
HEADER_BYTES = 12

_Frame = tuple[bytes, bytes, bytes, bytes]  # length, its checksum, data, their checksum


def _build_table() -> np.ndarray:
    # CRC-32C: the Castagnoli polynomial 0x1EDC6F41, bits reversed.
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table.astype(np.uint32)


_TABLE = _build_table()


def crc32c_of_each(chunks: Sequence[bytes]) -> np.ndarray:
    """Returns the CRC-32C of each byte string: `[len(chunks)]` uint32."""
    lengths = np.fromiter(map(len, chunks), np.int64, len(chunks))
    order = np.argsort(-lengths, kind="stable")
    data = np.frombuffer(b"".join(chunks), np.uint8)
    starts = (np.cumsum(lengths) - lengths)[order]
    # How many chunks have a byte at each position: they come first in the order.
    counts = len(chunks) - np.cumsum(np.bincount(lengths))[:-1] if len(chunks) else []
    crcs = np.full(len(chunks), 0xFFFFFFFF, np.uint32)
    for position, count in enumerate(counts):
        crc = crcs[:count]
        crcs[:count] = _TABLE[(crc ^ data[starts[:count] + position]) & 0xFF] ^ (crc >> 8)
    result = np.empty_like(crcs)
    result[order] = ~crcs
    return result


def _masked(crcs: np.ndarray) -> np.ndarray:
    # TFRecord stores checksums rotated and shifted, so that data containing checksums stays safe.
    return ((crcs >> 15) | (crcs << 17)) + np.uint32(0xA282EAD8)


def are_headers(data: bytes) -> np.ndarray:
    """Returns whether a record can begin at each place of `data`: `[len(data) - 11]` bool."""
    places = max(0, len(data) - HEADER_BYTES + 1)
    values = np.frombuffer(data, np.uint8)
    crcs = np.full(places, 0xFFFFFFFF, np.uint32)
    for byte in range(8):
        crcs = _TABLE[(crcs ^ values[byte : byte + places]) & 0xFF] ^ (crcs >> 8)
    stored = np.zeros(places, np.uint32)
    for byte in range(4):
        stored |= values[8 + byte : 8 + byte + places].astype(np.uint32) << np.uint32(8 * byte)
    return _masked(~crcs) == stored


def write_records(stream: BinaryIO, records: Sequence[bytes]) -> None:
    """Writes the records to a binary stream in TFRecord framing."""
    lengths = [struct.pack("<Q", len(record)) for record in records]
    length_crcs = _masked(crc32c_of_each(lengths)).astype("<u4").tobytes()
    data_crcs = _masked(crc32c_of_each(records)).astype("<u4").tobytes()
    parts = []
    for number, record in enumerate(records):
        crc = slice(4 * number, 4 * number + 4)
        parts += (lengths[number], length_crcs[crc], record, data_crcs[crc])
    # In one write: compressors are slow with small ones.
    stream.write(b"".join(parts))


def read_records(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the records of a binary stream in TFRecord framing, checksums verified.

    Raises:
      ValueError: if a record is damaged or cut off, after the records before it; the message gives
        its number. Errors of the stream are also raised after the records before them.
    """
    frames: list[_Frame] = []
    first, damage = 1, None
    while damage is None:
        try:
            frame = _read_frame(stream)
        except ValueError as error:
            damage = ValueError(f"record {first + len(frames)} {error}")
        except (EOFError, OSError, zlib.error) as error:
            damage = error
        else:
            if frame is None:
                break
            frames.append(frame)
            if len(frames) == _RECORDS_AT_ONCE:
                yield from _verified(frames, first)
                first, frames = first + len(frames), []
    yield from _verified(frames, first)
    if damage is not None:
        raise damage


def _read_frame(stream: BinaryIO) -> _Frame | None:
    header = stream.read(HEADER_BYTES)
    if not header:
        return None
    whole = len(header) == HEADER_BYTES
    length = struct.unpack("<Q", header[:8])[0] if whole else _MAX_RECORD_BYTES + 1
    if length > _MAX_RECORD_BYTES:
        raise ValueError("is damaged")
    data, data_crc = stream.read(length), stream.read(4)
    if len(data_crc) < 4:
        raise ValueError("is cut off")
    return header[:8], header[8:], data, data_crc


def _verified(frames: list[_Frame], first: int) -> Iterator[bytes]:
    if not frames:
        return
    lengths, length_crcs, records, data_crcs = zip(*frames, strict=True)
    wrong = np.zeros(len(frames), bool)
    for chunks, stored in ((lengths, length_crcs), (records, data_crcs)):
        wrong |= _masked(crc32c_of_each(chunks)) != np.frombuffer(b"".join(stored), "<u4")
    if wrong.any():
        yield from records[: wrong.argmax()]
        raise ValueError(f"record {first + int(wrong.argmax())} has a wrong checksum")
    yield from records
