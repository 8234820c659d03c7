"""Checks that a peer does the same work as ours, before it is timed or trained.

Standard library only: this also runs in the environments of the peers. Each check ends the
benchmark with a line that says what differs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from statistics import fmean

_MOST_EXCEPTIONS = 0.02  # Share of the texts; 0.4 % of lines in 448 languages.
_UNKNOWN_APART = 0.005  # Share of the tokens.
_FALL = 0.95
_MOST_APART = 0.05  # Share of the pairs that a filter accepts.
_LEAST_FOUND = 0.99  # Share of mined pairs; another order of summation swaps near ties.


def check_vocabulary(ours: Sequence[str], theirs: Mapping[str, int]) -> None:
    """Checks that the peer's tokenizer gives each id the token on its line of our vocab.txt."""
    by_id = {number: token for token, number in theirs.items()}
    wrong = [number for number, token in enumerate(ours) if by_id.get(number) != token]
    if len(theirs) == len(ours) and not wrong:
        return
    problem = f"the peer's tokenizer has {len(theirs)} tokens, the vocabulary {len(ours)}"
    if wrong:
        first, there = wrong[0], by_id.get(wrong[0])
        problem += f"; {len(wrong)} ids differ, first {first}: {ours[first]!r} here, "
        problem += "nothing there" if there is None else f"{there!r} there"
    raise SystemExit(problem)


def check_rows(rows: int, tokens: int, asked: int | None = None) -> None:
    """Checks that the peer's embedding table has a row for each token of its tokenizer.

    Args:
      rows: rows of the table.
      tokens: tokens of the tokenizer.
      asked: requested number of rows, some of which may be unused; None for one per token.
    """
    if rows != (asked or tokens) or rows < tokens:
        raise SystemExit(
            f"the peer's embedding table has {rows} rows; "
            f"its tokenizer has {tokens} tokens" + (f", {asked} were asked for" if asked else "")
        )


def check_tokens(
    texts: Sequence[str],
    ours: Sequence[Sequence[int]],
    theirs: Sequence[Sequence[int]],
    unknown: int,
) -> None:
    """Checks that the peer's token ids of the texts equal ours, except for known differences.

    Args:
      texts: the sample, not empty.
      ours: ids of each text.
      theirs: likewise.
      unknown: the id of [UNK].
    """
    shares = [_share(ids, unknown) for ids in (ours, theirs)]
    if abs(shares[0] - shares[1]) > _UNKNOWN_APART:
        raise SystemExit(
            f"{100 * shares[1]:.1f} % of the peer's tokens are [UNK], {100 * shares[0]:.1f} % of "
            "ours: it does not read the same texts"
        )
    apart = [row for row in zip(texts, ours, theirs, strict=True) if list(row[1]) != list(row[2])]
    for text, our_ids, their_ids in apart:
        if not exception_of(text):
            raise SystemExit(
                f"the peer has other tokens of {text[:70]!r}: "
                f"{list(their_ids)[:20]}, ours are {list(our_ids)[:20]}"
            )
    if len(apart) > _MOST_EXCEPTIONS * len(texts):
        raise SystemExit(
            f"the peer has other tokens of {len(apart)} of {len(texts)} texts, more than the "
            f"{_MOST_EXCEPTIONS:.0%} that known differences explain; first {apart[0][0][:70]!r}"
        )


def _share(ids: Sequence[Sequence[int]], wanted: int) -> float:
    total = sum(map(len, ids))
    return sum(list(row).count(wanted) for row in ids) / max(total, 1)


def exception_of(text: str) -> str | None:
    """Names the part of a text that Hugging Face and TF Text treat differently; None if none."""
    if any(len(word) > 75 for word in text.split()):
        return "a long word"
    found = {
        f"U+{ord(char):04X} {unicodedata.name(char, '')} ({unicodedata.category(char)})"
        for char in text
        if unicodedata.category(char) in ("Cf", "Cc", "Co", "Cn", "Zs", "Zl", "Zp") and char != " "
    }
    return ", ".join(sorted(found)) or None


def check_loss(losses: Sequence[float], name: str) -> None:
    """Checks that training learns: the last fifth of the losses is clearly below the first."""
    if len(losses) < 2:
        raise SystemExit(f"{name}: too few steps to see whether its loss falls")
    first, last = losses[0], fmean(losses[-max(1, len(losses) // 5) :])
    if not last < _FALL * first:  # Also true if either is NaN.
        raise SystemExit(
            f"{name} learns nothing: its loss was {first:.3f} at first and is {last:.3f} at last"
        )


def check_accepted(
    ours: Mapping[str, int], theirs: Mapping[str, int], pairs: int, known: Mapping[str, float]
) -> None:
    """Checks that filters of the same purpose accept about equally many of the same pairs.

    Args:
      ours: number of accepted pairs by filter.
      theirs: likewise.
      pairs: number of all pairs.
      known: allowed difference, as a share of the pairs, for filters that are known to differ.
    """
    for name, accepted in ours.items():
        apart = abs(theirs[name] - accepted)
        if not theirs[name] or apart > known.get(name, _MOST_APART) * pairs:
            raise SystemExit(
                f"the peer's filter {name!r} accepts {theirs[name]} of {pairs} pairs, "
                f"ours {accepted}: it does not do the same work"
            )


def check_found(share: float) -> None:
    """Checks the `share` of the peer's pairs that ours mines from the same vectors."""
    if share < _LEAST_FOUND:
        raise SystemExit(
            f"ours finds {share:.1%} of the peer's pairs, less than {_LEAST_FOUND:.0%}: "
            "the two do not do the same work"
        )
