"""An encoder that knows the tiny sentences: translations have the same vector, others do not."""

from __future__ import annotations

import numpy as np
from tiny_text import LANGUAGES, sentences_of

# The number of a sentence is 6 times that of its animal and that of its thing.
_MEANING = {text: i for language in LANGUAGES for i, text in enumerate(sentences_of(language))}


class Dictionary:
    """Rows of unit length, 0.8 for the animal and 0.6 for the thing; zero for "nothing".

    Attributes:
      seen: the texts that were encoded, by all of them.
      stop_after: how many texts are encoded before the user stops it; None: never.
    """

    dim = 16
    seen: list[str] = []
    stop_after: int | None = None

    def encode(self, texts):
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        self.seen.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text):
        vector = np.zeros(16, np.float32)
        if text != "nothing":
            number = _MEANING.get(text, sum(map(ord, text)))
            vector[number // 6 % 8], vector[8 + number % 6] = 0.8, 0.6
        return vector
