"""`pytest -p affected`: of the tests, those that the changes since the last push can break.

These are the files that changed, the files of the same room, and the files that import a changed
module, by whatever way. If nothing changed, these are all.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp
from repository import ROOT

PACKAGES = ("labse_tf", "beam_pipelines", "vocab", "export", "benchmarks")
TESTS = "tests"


def pytest_collection_modifyitems(config, items):
    changed = changed_files()
    if not changed:
        return
    files = {str(item.path.relative_to(ROOT)) for item in items}
    wanted = affected(changed, {file: imports_of(ROOT / file) for file in files})
    kept = [item for item in items if str(item.path.relative_to(ROOT)) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


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


def affected(changed: Iterable[str], imports: Mapping[str, set[str]]) -> set[str]:
    """Returns the test files that changes can break.

    Args:
      changed: paths from the root.
      imports: by test file the names that it imports, of modules or of what is in them.
    """
    graph = grimp.build_graph(*PACKAGES)
    found = set()
    for path in map(Path, changed):
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        if path.parts[0] == TESTS:
            found |= _of_tests(path, imports)
        elif module in graph.modules:
            near = {module, *graph.find_downstream_modules(module)}
            room = str(Path(TESTS, *path.parent.parts))
            found |= {
                file
                for file, names in imports.items()
                if str(Path(file).parent) == room or not names.isdisjoint(near)
            }
        else:  # Pages, presets, examples: the tests of no room read them.
            found |= {file for file in imports if str(Path(file).parent) == TESTS}
    return found


def _of_tests(path: Path, imports: Mapping[str, set[str]]) -> set[str]:
    if path.name == "conftest.py":
        return {file for file in imports if Path(file).is_relative_to(path.parent)}
    return {file for file, names in imports.items() if file == str(path) or path.stem in names}


def imports_of(path: Path) -> set[str]:
    """Returns the modules that a file imports, anywhere in it, and the names that it takes."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
