"""The encoder protocol: any model that embeds sentences can be evaluated and used for mining."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np


class Encoder(Protocol):
    """What evaluation tasks and mining require of a model."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, rows of unit length, in the order of the texts."""


def list_texts(texts: Iterable[str]) -> list[str]:
    """Returns the argument of `encode` as a list, after checking each text.

    Args:
      texts: a list, or anything else of one dimension, such as an array, a column or a generator.

    Raises:
      TypeError: if it is one string, a mapping or a table, or if an item is not a string.
      ValueError: if an item has half of a surrogate pair, which UTF-8 cannot encode.
    """
    if isinstance(texts, str | bytes | Mapping | set | frozenset) or getattr(texts, "ndim", 1) != 1:
        raise TypeError(f"encode() takes a list of strings, not one {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"encode() takes strings, and text {index} is {text!r:.80}; leave it out, or give "
                '"" or bytes.decode() in its place'
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text {index} has half of a surrogate pair at character {error.start}; decode the "
                'text again, or replace it: text.encode("utf-8", "replace").decode()'
            ) from error
    return texts
