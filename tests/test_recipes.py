"""Every training command that a page, a preset or a help text shows has a valid configuration."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from config_kinds import KINDS
from repository import ROOT

from labse_tf.config import check_warmup, load_config

SOURCES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "configs").glob("*.yaml")),
    *sorted((ROOT / "labse_tf" / "cli").glob("*.py")),
    *sorted((ROOT / "labse_tf" / "systems").glob("*/*command.py")),
]
COMMAND = re.compile(
    r"labse (pretrain|train|train-nli|train-laser|distill|corpus train-cds|mine-negatives) "
    r".*--run-dir .*"
)
IN_A_MINUTE = re.compile(r"In a minute: add (--set .*)")

# What a page writes as $S.
CORPORA = {"tokenizer.vocab_file": "", "pretrain.monolingual": "[m]", "pretrain.bitext": "[b]"}


class Recipe(NamedTuple):
    """A command as it is shown: `config` or "", `sets` by key."""

    words: tuple[str, ...]
    config: str
    sets: dict[str, str]
    in_a_minute: bool

    def settings(self):
        overrides = [f"{key}={value}" for key, value in self.sets.items()]
        kind = KINDS[" ".join(self.words)]
        return load_config(ROOT / self.config if self.config else None, overrides, kind)


def shown_commands(path: Path) -> Iterator[Recipe]:
    text = path.read_text("utf-8").replace("\\\\\n", "\\\n")
    text = re.sub(r"^# ?", "", text, flags=re.MULTILINE) if path.suffix == ".yaml" else text
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    minute = next((found[1] for line in lines if (found := IN_A_MINUTE.search(line))), None)
    for line in lines:
        if (found := COMMAND.search(line)) and "`" not in line:
            words = shlex.split(found[0].rstrip("& "))
            yield parse(words, in_a_minute=False)
            if minute:
                yield parse([*words, *shlex.split(minute)], in_a_minute=True)


def parse(words: list[str], *, in_a_minute: bool) -> Recipe:
    count = 3 if words[1] == "corpus" else 2
    command, rest, config, sets = words[1:count], words[count:], "", {}
    for place, word in enumerate(rest):
        if word == "--set":
            key, _, value = rest[place + 1].partition("=")
            sets[key] = value
        elif word.endswith(".yaml"):
            config = word
    if "$S" in rest:
        sets |= CORPORA
    return Recipe(tuple(command), config, sets, in_a_minute)


def test_recipes_are_found_and_accepted():
    """All commands that train, each preset's header, and each recipe as it is shown."""
    recipes = [one for path in SOURCES for one in shown_commands(path)]
    assert {" ".join(recipe.words) for recipe in recipes} == set(KINDS) - {"plan"}
    headers = {path.name: list(shown_commands(path)) for path in (ROOT / "configs").glob("*.yaml")}
    assert [name for name, found in headers.items() if not found] == ["corpora_effect.yaml"]
    for recipe in recipes:
        config = recipe.settings()
        check_warmup(config)
        for key in () if recipe.in_a_minute else recipe.sets:
            assert key.partition(".")[0] in vars(config), (recipe, key)
