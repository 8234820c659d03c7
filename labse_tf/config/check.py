"""Rejects invalid configurations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator

from labse_tf.config.requirements import Requirement
from labse_tf.config.tree import Config, flatten
from labse_tf.errors import InputError


def check(config: Config, *, path: str | os.PathLike[str] | None = None) -> None:
    """Rejects values that no run can use, as each section's `requirements` define them.

    Raises:
      InputError: with the key's full name and the offending value.
    """
    _refuse_unfulfilled(config, [*_of_sections(config), *config.requirements()], path)


def check_warmup(
    config: Config, section: str, *, path: str | os.PathLike[str] | None = None
) -> None:
    """Rejects a warm-up as long as the training, in the one section that a command trains from.

    Raises:
      InputError: with the key's full name and the offending value.
    """
    requirements = []
    for key, optimizer, steps in getattr(config, section).runs(section):
        fits = not steps or optimizer.warmup_of(steps) < steps
        wanted = f"fewer than the {steps} training steps, or a fraction of them such as 0.1"
        requirements.append(Requirement(f"{key}.warmup_steps", fits, wanted))
    _refuse_unfulfilled(config, requirements, path)


def _of_sections(parent, prefix: str = "") -> Iterator[Requirement]:
    for field in dataclasses.fields(parent):
        section, name = getattr(parent, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(section):
            if hasattr(section, "requirements"):
                yield from section.requirements(name)
            yield from _of_sections(section, f"{name}.")


def _refuse_unfulfilled(config: Config, requirements: Iterable[Requirement], path) -> None:
    values = dict(flatten(dataclasses.asdict(config)))
    for key, fulfilled, wanted in requirements:
        if not fulfilled:
            raise InputError(
                f"'{key}' is {values[key]!r}", path=path, remedy=f"it must be {wanted}"
            )
