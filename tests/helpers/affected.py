"""`pytest -p affected`: of the tests, those that the changes since the last push can break.

These are in the files that changed, in those of the same room, and in those that import a changed
module, the nearest first. Slow ones are left out, and so are those that 35 seconds do not reach:
`make check` calls it, after each change; `make test` runs all. Nothing changed: all are candidates.
"""

from __future__ import annotations

import ast
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp
import pytest
from repository import ROOT

PACKAGES = ("labse_tf", "beam_pipelines", "vocab", "export", "benchmarks")
TESTS = "tests"
SECONDS = 35
# Tests of these begin with a training, an export or a process.
SLOW_FIXTURES = {"pretrained_run", "trained_run", "model_dir", "labse"}

_started = time.monotonic()


def pytest_collection_modifyitems(config, items):
    changed = changed_files()
    files = {_file(item) for item in items}
    near = dict.fromkeys(files, 0)
    if changed:
        near = affected(changed, {file: imports_of(ROOT / file) for file in files})
    kept = [item for item in items if _file(item) in near and not _is_slow(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = sorted(kept, key=lambda item: near[_file(item)])


def pytest_runtest_setup(item):
    if time.monotonic() - _started > SECONDS:
        pytest.skip(f"{SECONDS} seconds are over: left to make test")


def _file(item: pytest.Item) -> str:
    return str(item.path.relative_to(ROOT))


def _is_slow(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker("slow")) or not SLOW_FIXTURES.isdisjoint(item.fixturenames)


def changed_files() -> list[str]:
    """Returns the paths, from the root, that differ from what was pushed, new ones among them."""
    try:
        base = _git("merge-base", "HEAD", "@{upstream}")
    except subprocess.CalledProcessError:  # No upstream.
        base = ["HEAD"]
    return [*_git("diff", "--name-only", *base), *_git("ls-files", "-o", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def affected(changed: Iterable[str], imports: Mapping[str, set[str]]) -> dict[str, int]:
    """Returns the test files that changes can break, and how far they are from them.

    Args:
      changed: paths from the root.
      imports: by test file the names that it imports, of modules or of what is in them.

    Returns:
      0 for a file that changed, or is of the changed module's room; 1 for one that imports it, 2
      for one that imports what imports it, by whatever way.
    """
    graph = grimp.build_graph(*PACKAGES)
    found: dict[str, int] = {}
    for path in map(Path, changed):
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        if path.parts[0] == TESTS:
            near = _near_test(path, imports)
        elif module in graph.modules:
            near = _near_module(path, module, graph.find_downstream_modules(module), imports)
        else:  # Pages, presets, examples: tests of no room read them.
            near = {file: 0 for file in imports if str(Path(file).parent) == TESTS}
        for file, distance in near.items():
            found[file] = min(distance, found.get(file, distance))
    return found


def _near_test(path: Path, imports: Mapping[str, set[str]]) -> dict[str, int]:
    if path.name == "conftest.py":
        return {file: 1 for file in imports if Path(file).is_relative_to(path.parent)}
    users = {file: 1 for file, names in imports.items() if path.stem in names}
    return users | ({str(path): 0} if str(path) in imports else {})


def _near_module(
    path: Path, module: str, downstream: set[str], imports: Mapping[str, set[str]]
) -> dict[str, int]:
    room = str(Path(TESTS, *path.parent.parts))
    far = {file: 2 for file, names in imports.items() if not names.isdisjoint(downstream)}
    near = {file: 1 for file, names in imports.items() if module in names}
    return far | near | {file: 0 for file in imports if str(Path(file).parent) == room}


def imports_of(path: Path) -> set[str]:
    """Returns the modules that a file imports or names (`module:attribute`), and what it takes."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value:
            names.add(node.value.partition(":")[0])
    return names
