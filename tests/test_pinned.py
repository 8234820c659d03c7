"""Names, options and bytes that users rely on stay as tests/pinned/ has them.

After a change on purpose write the files anew, and read their diff as a user would:

    UPDATE_PINNED=1 python -m pytest -n0 tests/test_pinned.py
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import json
import os
from pathlib import Path

import yaml
from config_kinds import KINDS
from repository import ROOT

import labse_tf
from labse_tf.cli.main import COMMANDS, load_command, main, make_parser
from labse_tf.config import Config, flatten, load_config
from labse_tf.demo.corpus.sources import SOURCES
from labse_tf.demo.corpus.write import write_demo_corpus

PINNED = ROOT / "tests" / "pinned"
PUBLIC = (
    "labse_tf.load",
    "labse_tf.losses.translation_ranking_loss",
    "vocab.learner.learn",
)
SMALL = ("django-formtools", "django-filter")


def assert_pinned(name: str, text: str) -> None:
    path = PINNED / name
    if os.environ.get("UPDATE_PINNED"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_options_of_every_command():
    """Their names, defaults, choices and numbers of values; how help is worded may change."""
    found = {}
    for words in COMMANDS:
        parser = make_parser(words, load_command(words))
        options = found[" ".join(words)] = {}
        for action in parser._actions[1:]:
            kind = {"default": action.default, "nargs": action.nargs, "required": action.required}
            kind |= {"choices": action.choices and [*action.choices]}
            kind |= {"type": action.type and action.type.__name__}
            name = "/".join(action.option_strings) or action.metavar
            options[name] = {key: one for key, one in kind.items() if one or type(one) is int}
    assert_pinned("options.yaml", yaml.safe_dump(found, sort_keys=False, default_flow_style=None))


def test_public_names():
    lines = []
    for name in PUBLIC:
        module, _, attribute = name.rpartition(".")
        function = getattr(importlib.import_module(module), attribute)
        lines.append(f"{name}{inspect.signature(function)}\n")
    from labse_tf.embedding.embedder import Embedder

    lines.append(f"Embedder.encode{inspect.signature(Embedder.encode)}\n")
    lines.append(f"labse_tf.__version__ = {labse_tf.__version__}\n")
    assert_pinned("public_names.txt", "".join(lines))


def test_resolved_presets():
    """Each command's defaults, then what the presets with a section of its own set otherwise."""
    tree = {"every command": dict(flatten(dataclasses.asdict(Config())))}
    for command, kind in KINDS.items():
        own = dict(flatten(dataclasses.asdict(kind())))
        defaults = {k: v for k, v in own.items() if k.startswith(f"{kind.own_section}.")}
        tree[command] = {"defaults": defaults}
        for path in sorted((ROOT / "configs").glob("*.yaml")):
            if f"{kind.own_section}:" in path.read_text("utf-8").splitlines():
                values = dict(flatten(dataclasses.asdict(load_config(path, kind=kind))))
                tree[command][path.name] = {k: v for k, v in values.items() if v != own[k]}
        if kind.own_section == "train" and command != "train":
            shared = dict(flatten(dataclasses.asdict(KINDS["train"]())))
            tree[command] = {k: v for k, v in defaults.items() if v != shared[k]}
    assert_pinned("presets.yaml", yaml.safe_dump(tree, sort_keys=False))


def test_bytes_of_the_filters_and_the_vocabulary(tmp_path, monkeypatch):
    """The demo's commands on a part of its corpus: 994 pairs of 57 languages."""
    monkeypatch.chdir(tmp_path)
    write_demo_corpus("corpus", sources=[s for s in SOURCES if s.distribution in SMALL])
    for command in (
        "corpus filter-monolingual corpus/monolingual --out monolingual --scores",
        "corpus filter-bitext corpus/bitext --out bitext --max-language-doubt 0.5 --scores",
        "vocab build monolingual bitext --out vocab.txt --vocab-size 3000",
    ):
        assert main(command.split()) == 0, command
    hashes = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for root in ("corpus", "monolingual", "bitext", "vocab.txt")
        for path in sorted([Path(root), *Path(root).rglob("*")])
        if path.is_file()
    }
    folders: dict[str, hashlib._Hash] = {}
    for path, digest in hashes.items():
        # A hash per folder, not per shard.
        folder = "/".join(Path(path).parts[:2])
        folders.setdefault(folder, hashlib.sha256()).update(f"{path} {digest}\n".encode())
    pinned = {folder: digest.hexdigest() for folder, digest in folders.items()}
    assert_pinned("bytes.json", json.dumps(pinned, indent=1) + "\n")
