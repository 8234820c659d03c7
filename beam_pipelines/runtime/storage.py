"""Folders that several workers may create at the same time."""

from __future__ import annotations

from apache_beam.io.filesystems import FileSystems


def make_folder(path: str) -> None:
    """Makes the folder if it does not exist."""
    if FileSystems.exists(path):
        return
    try:
        FileSystems.mkdirs(path)
    except OSError:
        # Another worker may have made it meanwhile.
        if not FileSystems.exists(path):
            raise
