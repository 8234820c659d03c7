"""The vectors of more texts than memory holds: shards on disk that are made once."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.evaluation.embedding import embed
from labse_tf.evaluation.encoder import Encoder
from labse_tf.evaluation.record import encoder_facts
from labse_tf.outputs import whole_file
from labse_tf.progress import Progress
from labse_tf.retrieval.vectors import Vectors, open_vectors

TEXTS_A_SHARD = 131_072

_MADE_FROM = "made_from.json"
# What of an encoder's facts its vectors depend on.
_IDENTITY = ("name", "kind", "sequence_length", "model_sha256", "vocabulary_sha256")


def embed_to_files(
    encoder: Encoder,
    texts: Iterable[str],
    folder: str | os.PathLike[str],
    *,
    count: int,
    texts_sha256: str,
) -> Vectors:
    """Embeds texts into a folder of shards `part-?????-of-?????.npy`.

    Shards that are there already, of the same texts and encoder, are not made again: work that was
    stopped goes on. Others are replaced, and so are those of an encoder that tells no hash of its
    model, since nobody knows whether it is the same.

    Args:
      encoder: any.
      texts: in order.
      folder: of these vectors alone.
      count: of the texts.
      texts_sha256: of the files that they come from.

    Returns:
      float32 `[count, dim]`, memory-mapped.

    Raises:
      InputError: if a vector is all zeros, which has no direction.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _forget_others(folder, _origin(encoder, count, texts_sha256))
    total = -(-count // TEXTS_A_SHARD)
    with Progress("embed", total=count, unit="sentence") as progress:
        for number, part in enumerate(_parts(texts)):
            path = folder / f"part-{number:05d}-of-{total:05d}.npy"
            if not path.exists():
                vectors = embed(encoder, part, progress)
                with whole_file(path) as partial, open(partial, "wb") as file:
                    np.save(file, vectors)
            else:
                progress.update(len(part))
    return open_vectors(folder)


def _origin(encoder: Encoder, count: int, texts_sha256: str) -> dict[str, Any]:
    facts = encoder_facts(encoder)
    identity = {name: facts.get(name) for name in _IDENTITY}
    return {"texts": count, "texts_sha256": texts_sha256, "encoder": identity}


def _forget_others(folder: Path, origin: dict[str, Any]) -> None:
    """Removes shards that were made from something else, or may have been."""
    note = folder / _MADE_FROM
    with contextlib.suppress(OSError, ValueError):
        if origin["encoder"]["model_sha256"] and json.loads(note.read_text("utf-8")) == origin:
            return
    for shard in folder.glob("part-*-of-*.npy"):
        shard.unlink()
    with whole_file(note, overwrite=True) as partial:
        partial.write_text(json.dumps(origin, indent=1) + "\n", "utf-8")


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(texts)
    while part := list(itertools.islice(remaining, TEXTS_A_SHARD)):
        yield part
