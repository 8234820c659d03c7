"""What a section of the configuration requires of its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Requirement(NamedTuple):
    """A condition on one value.

    Attributes:
      key: the value's full name.
      fulfilled: whether the value meets the condition.
      wanted: what the value must be, for the message.
    """

    key: str
    fulfilled: bool
    wanted: str


def at_least(least: int, section: str, settings, *names: str) -> Iterator[Requirement]:
    """Yields the requirement "`least` or more" for each named value of a section."""
    for name in names:
        yield Requirement(f"{section}.{name}", getattr(settings, name) >= least, f"{least} or more")


def more_than_0(section: str, settings, *names: str) -> Iterator[Requirement]:
    """Yields the requirement "more than 0" for each named value of a section."""
    for name in names:
        yield Requirement(f"{section}.{name}", getattr(settings, name) > 0, "more than 0")


def dropout(section: str, settings) -> Requirement:
    """Returns the requirement on a section's dropout."""
    return Requirement(f"{section}.dropout", 0.0 <= settings.dropout < 1.0, "in [0, 1)")


def heads(section: str, settings) -> Requirement:
    """Returns the requirement on a section's attention heads."""
    number, width = settings.num_attention_heads, settings.hidden_size
    divides = number > 0 and width % number == 0
    wanted = f"a divisor of {section}.hidden_size"
    return Requirement(f"{section}.num_attention_heads", divides, wanted)


def buckets(section: str, settings, *, least: int) -> Requirement:
    """Returns the requirement on a section's `bucket_lengths`."""
    lengths: Sequence[int] = settings.bucket_lengths
    ascending = bool(lengths) and sorted(set(lengths)) == list(lengths) and lengths[0] >= least
    return Requirement(f"{section}.bucket_lengths", ascending, f"ascending, from {least}")


def within(section: str, dims: Sequence[int], width: int, name: str) -> Requirement:
    """Returns the requirement that `dims`, a section's `matryoshka`, are at most `width`.

    `name` is the full name of the key that sets the width.
    """
    fits = max(dims, default=0) <= width
    wanted = f"descending, from {name} ({width}) or less"
    return Requirement(f"{section}.matryoshka", fits, wanted)
