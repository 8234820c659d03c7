"""Reads and writes the configuration of a run."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from labse_tf.config import Config, flatten
from labse_tf.config.check import check
from labse_tf.errors import InputError
from labse_tf.files.local_paths import local_path
from labse_tf.files.staging import input_path
from labse_tf.files.storage import TENSORFLOW_SCHEMES, scheme_of
from labse_tf.languages import require_code

# Former section names, which older runs and presets still use.
_RENAMED = {"contrastive": "cds"}

# The keys of corpora that training reads, also from stores.
CORPORA_KEYS = (
    *("pretrain.monolingual", "pretrain.bitext", "pretrain.neighbours", "distill.monolingual"),
    *(
        "train.bitext",
        "train.replay",
        "negatives.train.bitext",
        "laser.bitext",
        "cds.noisy",
        "cds.trusted",
    ),
)

# A key's full name, its value, and where it was set.
Entry = tuple[str, Any, str | os.PathLike[str]]


def load_config(path: str | os.PathLike[str] | None, overrides: Sequence[str] = ()) -> Config:
    """Applies a YAML file, if one is given, and then `a.b=c` overrides to the defaults.

    Raises:
      InputError: for a missing or malformed file, an unknown key (the message names the closest
        known one), a value of the wrong type or out of range.
    """
    tree = copy.deepcopy(_default_tree())
    if path is not None:
        path = input_path(path)
        if not os.path.isfile(path):
            path = find_preset(path) or path
        _merge(tree, [(key, value, path) for key, value in flatten(_read_yaml(path))])
    _merge(tree, [entry for override in overrides for entry in _parse(override)])
    try:
        config = OmegaConf.to_object(tree)
    except OmegaConfBaseException as error:
        raise InputError(
            f"'{error.full_key}' cannot be resolved ({error.msg})",
            path=path,
            remedy="write values without ${...}",
        ) from error
    config.languages = [require_code(code, path=path) for code in config.languages]
    check(config, path=path)
    return config


@functools.cache
def _default_tree() -> DictConfig:
    return OmegaConf.structured(Config)  # 20 ms; a copy of it 4.


def save_config(config: Config, path: str | os.PathLike[str]) -> None:
    """Writes the complete tree as YAML."""
    OmegaConf.save(OmegaConf.structured(config), path)


def differences(one: Config, other: Config) -> list[str]:
    """Returns the full names of the keys in which two configurations differ."""
    left, right = (dict(flatten(dataclasses.asdict(config))) for config in (one, other))
    return sorted(key for key in left if left[key] != right[key])


class _Loader(yaml.SafeLoader):
    """YAML in which `no` is Norwegian: only `true` and `false` are booleans."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("^(?:true|false)$"), list("tf"))


def find_preset(name: str) -> Path | None:
    """Returns the path of a preset, such as `tiny.yaml` or `configs/tiny.yaml`, if there is one.

    In a checkout the presets are in configs/, in an installed package in its folder `presets`.
    """
    path = Path(name)
    if path.parent not in (Path("."), Path("configs")):
        return None
    package = Path(__file__).parents[1]
    places = (package.parent / "configs" / path.name, package / "presets" / path.name)
    return next((place for place in places if place.is_file()), None)


def _read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    if not os.path.isfile(path):
        raise InputError(
            "no such configuration",
            path=path,
            remedy="name a file, or a preset of docs/paper.md such as configs/finetune.yaml",
        )
    with open(path, encoding="utf-8") as file:
        try:
            tree = yaml.load(file, _Loader)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            raise InputError(
                f"is not valid YAML ({getattr(error, 'problem', None) or 'not UTF-8'})",
                path=path,
                line=mark.line + 1 if mark else None,
                remedy="correct the syntax",
            ) from error
    if not isinstance(tree, dict):
        raise InputError("has no keys", path=path, remedy="see the presets in configs/")
    return tree


def _parse(override: str) -> Iterator[Entry]:
    """Yields the entries of `--set a.b=c`: several if c is a mapping."""
    key, equals, value = override.partition("=")
    if not equals:
        raise InputError(f"--set {override} has no '='", remedy="write --set key=value")
    try:
        parsed = yaml.load(value, _Loader) if value else ""  # YAML would parse it as null.
    except yaml.YAMLError as error:
        raise InputError(f"--set {key}: '{value}' is not valid YAML", remedy="quote it") from error
    for name, one in flatten({key.strip(): parsed}):
        yield name, one, f"--set {key}"


def _merge(tree: DictConfig, entries: Sequence[Entry]) -> None:
    """Merges values into the tree; the last value of a repeated key wins."""
    entries = [(_renamed(key), _local(key, value, path), path) for key, value, path in entries]
    try:
        tree.merge_with(_nest(entries))
    except OmegaConfBaseException:
        # Merge again, one key at a time (10 ms each), so that the error can name the full key.
        for entry in entries:
            _merge_one(tree, *entry)
        raise


def _nest(entries: Sequence[Entry]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value, _ in entries:
        *sections, name = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise ConfigKeyError(f"{key} is in no section")
        place[name] = value
    return nested


def _merge_one(tree: DictConfig, key: str, value: Any, path: str | os.PathLike[str]) -> None:
    nested = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    try:
        tree.merge_with(nested)
    except ConfigKeyError as error:
        raise InputError(
            f"there is no key '{key}'", path=path, remedy=f"nearest: {_nearest_key(key)}"
        ) from error
    except OmegaConfBaseException as error:
        raise InputError(
            f"'{key}' cannot be {value!r}", path=path, remedy=f"it takes {_expected_type(key)}"
        ) from error


def _renamed(key: str) -> str:
    section, dot, rest = key.partition(".")
    return f"{_RENAMED.get(section, section)}{dot}{rest}"


def _local(key: str, value: Any, path: str | os.PathLike[str]) -> Any:
    """Returns the value with `local_path` applied to all strings, as any may be a path.

    URLs of stores are left: what reads them copies them first. Corpora may be in any store.
    """
    if isinstance(value, list):
        return [_local(key, one, path) for one in value]
    scheme = scheme_of(value) if isinstance(value, str) else None
    if scheme and (key in CORPORA_KEYS or scheme in TENSORFLOW_SCHEMES):
        return value
    try:
        return local_path(value) if isinstance(value, str) else value
    except InputError as error:
        raise InputError(
            f"'{key}' is {error.path}: {error.problem}", path=path, remedy=error.remedy
        ) from error


def _defaults() -> dict[str, Any]:
    return dict(flatten(dataclasses.asdict(Config())))


def _nearest_key(key: str) -> str:
    known = list(_defaults())
    # The same last part in another section is a better match than similar letters.
    same_end = [other for other in known if other.split(".")[-1] == key.split(".")[-1]]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return (difflib.get_close_matches(key, same_end, n=1, cutoff=0.0) or near)[0]


def _expected_type(key: str) -> str:
    default = _defaults().get(key)
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
        list: "a list",
    }
    return names.get(type(default), "a group of keys")
