"""English sentences with another meaning and nearly the same words, as in xSIM++.

Chen et al. 2023 (arXiv 2306.12907, section 3) change causality, entities and numbers, with a parser
and a thesaurus. Here rules do it: digits become others, a number word another one; a capitalised
name inside a sentence becomes another name of the text; `not` is added to or taken from an
auxiliary verb, and some words become their opposites. The result depends on the text and the seed
alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

NUMBER, ENTITY, NEGATION = "number", "entity", "negation"
KINDS = (NUMBER, ENTITY, NEGATION)

_NUMBER = re.compile(r"\d+")
_WORDS = re.findall(
    r"\w+",
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty "
    "seventy eighty ninety hundred thousand million billion",
)
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
# Behind a lower-case word or a comma: not at the start of a sentence.
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_NOT = re.compile(r" not\b|n['’]t\b")
# Before n't these are other words.
_CONTRACTED = re.compile(r"\b(?:can|won|shan)['’]t\b", re.IGNORECASE)
_WHOLE = {"can": "can", "won": "will", "shan": "shall"}
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|has|have|had|does|do|did)\b"
    r"(?! not\b|['’])"
)
_OPPOSITES = dict(
    re.findall(
        r"(\w+)/(\w+)",
        "more/less before/after always/never all/none many/few first/last new/old good/bad "
        "high/low higher/lower large/small larger/smaller increase/decrease increased/decreased "
        "above/below early/late earlier/later strong/weak win/lose won/lost rise/fall rose/fell "
        "inside/outside north/south east/west northern/southern eastern/western open/closed "
        "hot/cold fast/slow long/short true/false right/wrong young/old up/down with/without "
        "possible/impossible legal/illegal public/private winter/summer day/night",
    )
)
_OPPOSITES |= {other: one for one, other in reversed(_OPPOSITES.items())}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b(?!['’])", re.IGNORECASE)


def perturb(
    sentences: Sequence[str], *, per_kind: int = 4, seed: int = 0
) -> Iterator[tuple[int, str, str]]:
    """Yields the place of a sentence, a kind of KINDS, and a changed text.

    Args:
      sentences: English.
      per_kind: at most so many texts of a kind are made of one sentence; all are different, and
        none is among `sentences`.
      seed: of what is drawn.
    """
    names = sorted({name for text in sentences for name in _NAME.findall(text)})
    known = set(sentences)
    changes: dict[str, Callable[[str, random.Random], Iterator[str]]] = {
        NUMBER: _other_numbers,
        ENTITY: lambda text, draw: _other_names(text, draw, names),
        NEGATION: _negations,
    }
    for place, text in enumerate(sentences):
        for kind, change in changes.items():
            draw = random.Random(f"{seed} {kind} {text}")
            made: list[str] = []
            for other in change(text, draw):
                if other not in known and other not in made:
                    made.append(other)
                if len(made) == per_kind:
                    break
            yield from ((place, kind, other) for other in made)


# Draws of each place that can be changed; equal ones are dropped.
_TRIALS = 8


def _other_numbers(text: str, draw: random.Random) -> Iterator[str]:
    digits, words = list(_NUMBER.finditer(text)), list(_NUMBER_WORD.finditer(text))
    for _ in range(_TRIALS):
        for found in digits:
            yield _replace(text, found, _other_digits(found[0], draw))
        for found in words:
            yield _replace(text, found, _as_case(draw.choice(_WORDS), found[0]))


def _other_digits(number: str, draw: random.Random) -> str:
    first = draw.choice("123456789") if number[0] != "0" else "0"
    return first + "".join(draw.choice("0123456789") for _ in number[1:])


def _other_names(text: str, draw: random.Random, names: Sequence[str]) -> Iterator[str]:
    places = list(_NAME.finditer(text))
    for _ in range(_TRIALS):
        for found in places:
            yield _replace(text, found, draw.choice(names))


def _negations(text: str, draw: random.Random) -> Iterator[str]:
    contracted = {found.end(): found for found in _CONTRACTED.finditer(text)}
    changed = [
        _replace(text, found, "") for found in _NOT.finditer(text) if found.end() not in contracted
    ]
    changed += [
        _replace(text, found, _as_case(_WHOLE[found[0][:-2].lower()], found[0]))
        for found in contracted.values()
    ]
    changed += [_replace(text, found, f"{found[0]} not") for found in _AUXILIARY.finditer(text)]
    changed += [
        _replace(text, found, _as_case(_OPPOSITES[found[0].lower()], found[0]))
        for found in _OPPOSITE.finditer(text)
    ]
    draw.shuffle(changed)
    yield from changed


def _replace(text: str, found: re.Match, other: str) -> str:
    return text[: found.start()] + other + text[found.end() :]


def _as_case(word: str, model: str) -> str:
    return word.capitalize() if model[0].isupper() else word
