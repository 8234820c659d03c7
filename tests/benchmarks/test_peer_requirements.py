"""What a peer runs on is pinned whole: no version is left to the day of the installation."""

import re

import pytest
from repository import ROOT

PEERS = ROOT / "benchmarks" / "peers"
PINNED = re.compile(r"([a-z0-9]+(?:[-.][a-z0-9]+)*)==\d\S*")
FILES = sorted(PEERS.glob("requirements*.txt"))


def requirements(file):
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def test_there_are_two():
    names = ["requirements-sentence-transformers.txt", "requirements.txt"]
    assert [file.name for file in FILES] == names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_line_is_pinned(file):
    assert [line for line in requirements(file) if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_was_asked_for_is_in_it(file):
    pinned = requirements(file)
    asked = requirements(file.with_suffix(".in"))
    assert asked
    for requirement in asked:
        name, exact, _ = requirement.partition("==")
        found = [line for line in pinned if line == requirement or line.startswith(f"{name}==")]
        assert found == ([requirement] if exact else found[:1]) and found, requirement


def test_what_decides_tokens_and_steps_is_pinned():
    names = {line.partition("==")[0] for line in requirements(FILES[0])}
    assert {"sentence-transformers", "transformers", "tokenizers", "torch", "numpy"} <= names
