"""Every training command that the README, a page, a preset or a help text shows is accepted.

The configuration of each is read and checked as the command does; each system's tests train its
commands. Here the two commands of the core train a tiny encoder, and every weight must move.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from config_kinds import KINDS
from repository import ROOT

from labse_tf.cli.main import main
from labse_tf.config import check_warmup, load_config
from labse_tf.training import fit

SOURCES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "configs").glob("*.yaml")),
    *sorted((ROOT / "labse_tf" / "cli").glob("*.py")),
    *sorted((ROOT / "labse_tf" / "systems").glob("*/*.py")),
]
COMMAND = re.compile(
    r"labse (pretrain|train|train-nli|train-laser|distill|corpus train-cds) .*--run-dir .*"
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
    config = next((word for word in words if word.endswith(".yaml")), "")
    given = [value.partition("=") for key, value in itertools.pairwise(words) if key == "--set"]
    sets = {key: value for key, _, value in given} | (CORPORA if "$S" in words else {})
    return Recipe(tuple(words[1:count]), config, sets, in_a_minute)


@functools.cache
def recipes() -> list[Recipe]:
    return [one for path in SOURCES for one in shown_commands(path)]


def test_recipes_are_found_and_accepted():
    """All commands that train, each preset's header, and each recipe as it is shown."""
    found = {" ".join(recipe.words) for recipe in recipes()}
    assert found == set(KINDS) - {"plan"}
    headers = {path.name: list(shown_commands(path)) for path in (ROOT / "configs").glob("*.yaml")}
    assert [name for name, found in headers.items() if not found] == ["corpora_effect.yaml"]
    for recipe in recipes():
        config = recipe.settings()
        check_warmup(config)
        for key in () if recipe.in_a_minute else recipe.sets:
            assert key.partition(".")[0] in vars(config), (recipe, key)


@pytest.fixture
def weights(monkeypatch):
    """Returns `[(name, before, after)]` of every weight trained, a list that runs add to."""
    found = []
    train = fit.train_and_measure

    def train_and_note(controller, course):
        trained = controller.trainer.objective.variables
        before = [variable.numpy() for variable in trained]
        train(controller, course)
        found.extend((v.name, old, v.numpy()) for v, old in zip(trained, before, strict=True))

    monkeypatch.setattr(fit, "train_and_measure", train_and_note)
    return found


@pytest.mark.parametrize("command", ["train", pytest.param("pretrain", marks=pytest.mark.slow)])
def test_every_weight_is_trained(command, config_file, weights, tmp_path):
    assert main([command, str(config_file), "--run-dir", str(tmp_path / "run")]) == 0
    assert weights, "nothing was trained"
    still = [name for name, before, after in weights if np.array_equal(before, after)]
    # Softmax does not change with what is added to all keys alike; MLM has no use for a pooler.
    without_gradient = ["key/bias", *(["pooler"] if command == "pretrain" else [])]
    assert [n for n in still if not any(part in n for part in without_gradient)] == []
