"""Every training command that the README, a page, a preset or a help text shows can be run.

The configuration of each is read and checked as the command does. One of each command is trained,
on tiny data with a tiny encoder, and every weight must move.
"""

from __future__ import annotations

import functools
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
from labse_tf.config import BILSTM, check_warmup, load_config
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

# The keys that name files, and the fixture that stands for them.
FILES = {
    "pretrain.monolingual": "monolingual_dir",
    "pretrain.bitext": "bitext_dir",
    "pretrain.neighbours": "monolingual_dir",
    "pretrain.held_out": "monolingual_dir",
    "nli.corpora": "inference_dir",
    "nli.dev": "inference_dir",
    "distill.monolingual": "monolingual_dir",
    "train.bitext": "bitext_dir",
    "train.replay": "bitext_dir",
    "train.dev": "bitext_dir",
    "laser.bitext": "bitext_dir",
    "laser.held_out": "bitext_dir",
}
# What a page writes as $S.
CORPORA = {"tokenizer.vocab_file": "", "pretrain.monolingual": "[m]", "pretrain.bitext": "[b]"}
OPTIONS = {"--noisy": "bitext_dir", "--trusted": "bitext_dir", "--teacher": "model_dir"}
OPTIONS |= {"--vocab": "vocab_file"}
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
LOOP = {"loop.log_interval": 4, "loop.checkpoint_interval": 1000}
TEXTS = LOOP | {"language_exponent": 0.5, "batch_size": 8, "bucket_lengths": "[32]"}
SEQUENCES = {"batch_size": 8, "sequence_length": 24}
HELD_OUT = {"held_out_interval": 4, "held_out_size": 2}
SMALLER = {
    "encoder": SIZES | {"max_positions": 128, "num_layers": 2, "vocab_size": 0, "dropout": 0.0},
    "pretrain": LOOP | SEQUENCES | HELD_OUT | {"max_predictions": 5, "language_exponent": 0.5},
    "train": TEXTS | {"scale": 10, "dev_interval": 4, "patience": 0},
    "nli": LOOP | SEQUENCES | {"dev_interval": 4},
    "laser": LOOP
    | HELD_OUT
    | {"targets": "[en,de]", "batch_tokens": 256, "bucket_lengths": "[32]"}
    | {"decoder_size": 16, "language_size": 4, "output_size": 8},
    "cds": TEXTS
    | {"vocab_size": 300, "translator.encoder_layers": 1, "translator.decoder_layers": 1}
    | {f"translator.{key}": value for key, value in SIZES.items()},
}


# A command and the end of its configuration's name: the first of these recipes is trained.
QUICK = [("train", "tiny_table.yaml")]
SLOW = [("pretrain", ""), ("train", "finetune.yaml"), ("train-nli", ""), ("train-laser", "")]
SLOW += [("distill", ""), ("corpus train-cds", "")]


class Recipe(NamedTuple):
    """A command as it is shown: `config` or "", `sets` by key, the other `options` by name."""

    words: tuple[str, ...]
    config: str
    sets: dict[str, str]
    options: dict[str, str]
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
    command, rest, config, sets, options = words[1:count], words[count:], "", {}, {}
    for place, word in enumerate(rest):
        if word == "--set":
            key, _, value = rest[place + 1].partition("=")
            sets[key] = value
        elif word.startswith("--"):
            options[word] = rest[place + 1]
        elif word.endswith(".yaml"):
            config = word
    if "$S" in rest:
        sets |= CORPORA
    return Recipe(tuple(command), config, sets, options, in_a_minute)


def shorter(recipe: Recipe) -> dict[str, object]:
    """What is set beside, to run it here."""
    config = recipe.settings()
    sets = {
        f"{section}.{key}": value
        for section, values in SMALLER.items()
        if hasattr(config, section)
        for key, value in values.items()
        # Those of a model that is tuned are its own.
        if section != "encoder" or not recipe.config.endswith(("finetune.yaml", "nli.yaml"))
    }
    if not config.encoder.num_layers:
        sets["encoder.num_layers"] = 0
    if recipe.words[-1] == "distill":
        # Half of its teacher: a student of the same size would begin as good as that.
        sets |= {"encoder.hidden_size": 8}
        if config.encoder.num_layers:
            sets["encoder.num_layers"] = 1
    if config.encoder.network == BILSTM:
        sets["encoder.embedding_size"] = SIZES["hidden_size"]
    for key, _, steps in config.runs():
        sets[f"{key}.warmup_steps"] = int(steps > 0)
        length = {"pretrain": "stage_steps"}.get(config.own_section, "steps")
        name = key.replace("optimizer", length)
        sets[name] = [4, 4][: len(config.own.stage_steps)] if length == "stage_steps" else 4
    return sets


@functools.cache
def recipes() -> list[Recipe]:
    return [one for path in SOURCES for one in shown_commands(path)]


def test_recipes_are_found_and_accepted():
    """All commands that train, each preset's header, and each recipe as it is shown."""
    found = {" ".join(recipe.words) for recipe in recipes()}
    assert found == {command for command, _ in (*QUICK, *SLOW)} == set(KINDS) - {"plan"}
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


@pytest.mark.parametrize(
    "command, config", [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)]
)
def test_a_recipe_trains_every_weight(command, config, request, weights, tmp_path):
    def of(fixture: str) -> str:
        return str(request.getfixturevalue(fixture))

    # Without those that need other folders than those of FILES.
    others = {"laser.target_bitext", "train.joint", "train.hard_negatives"}
    recipe = next(
        one
        for one in recipes()
        if " ".join(one.words) == command and one.config.endswith(config)
        if not one.in_a_minute and one.sets.keys().isdisjoint(others)
    )
    # As shown, nothing in it is refused.
    sets = {**recipe.sets, **shorter(recipe), "compute.precision": "float32"}
    sets |= {key: f"[{of(fixture)}]" for key, fixture in FILES.items() if key in sets}
    if "tokenizer.vocab_file" in sets:
        sets["tokenizer.vocab_file"] = of("vocab_file")
    arguments = [*recipe.words, *([str(ROOT / recipe.config)] if recipe.config else [])]
    if recipe.words[-1] == "train-cds" and recipe.config:
        arguments.insert(2, "--config")
    for option, value in recipe.options.items():
        if option in OPTIONS:
            arguments += [option, of(OPTIONS[option])]
        elif option == "--init":
            arguments += [
                option,
                of("pretrained_run" if value.startswith("runs/") else "model_dir"),
            ]
        elif option in ("--run-dir", "--out"):
            arguments += [option, str(tmp_path / option[2:])]
        elif option not in ("--strategy", "--tpu", "--logical-cpus", "--config"):
            arguments += [option, value]
    for key, value in sets.items():
        arguments += ["--set", f"{key}={value}"]
    weights.clear()  # A fixture may have been trained just now.
    assert main(arguments) == 0, shlex.join(arguments)
    assert weights, "nothing was trained"
    still = [name for name, before, after in weights if np.array_equal(before, after)]
    # Softmax does not change with what is added to all keys alike; MLM has no use for a pooler.
    without_gradient = ["key/bias", *(["pooler"] if recipe.words[-1] == "pretrain" else [])]
    assert [n for n in still if not any(part in n for part in without_gradient)] == []
