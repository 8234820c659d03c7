"""Do the tests notice a wrong line? Changes lines of the core at random, one at a time.

    python scripts/mutate.py --seed 1 --count 40 [--jobs 2] [FILE ...]

Each mutant is one change in a copy of the tree: a comparison, an operator, a number, `and` or `not`
becomes another. The quick tests that are nearest to the file run until one fails; a mutant that
none notices has survived. Prints each mutant and the number that died.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CORE = ("labse_tf/losses.py", "labse_tf/data", "labse_tf/model", "labse_tf/retrieval",
        "labse_tf/training", "vocab")  # fmt: skip
SECONDS = 600
_IGNORED = shutil.ignore_patterns(".venv", ".git", ".flink", ".hdfs", "__pycache__")
_OPERATORS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
}  # fmt: skip


def find_mutants(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields the number of a line, the line, and the line changed in one place."""
    lines = path.read_text("utf-8").splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        for number, start, end, new in _changes(node):
            # Offsets are in bytes.
            raw = (old := lines[number - 1]).encode()
            # Brackets around the operands stay.
            place = re.fullmatch(rb"([)\s]*)(.*?)([(\s]*)", raw[start:end])
            changed = raw[:start] + place[1] + new.encode() + place[3] + raw[end:]
            try:
                ast.parse("\n".join([*lines[: number - 1], changed.decode(), *lines[number:]]))
            except SyntaxError:
                continue
            yield number, old, changed.decode()


def _changes(node: ast.AST) -> Iterator[tuple[int, int, int, str]]:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            yield from _between(left, right, _OPERATORS[type(operator)])
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield from _between(node.left, node.right, _OPERATORS[type(node.op)])
    elif isinstance(node, ast.BoolOp):
        other = "or" if isinstance(node.op, ast.And) else "and"
        yield from _between(node.values[0], node.values[1], other)
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        new = repr(not node.value if isinstance(node.value, bool) else node.value + 1)
        yield node.lineno, node.col_offset, node.end_col_offset, new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.lineno, node.col_offset, node.operand.col_offset, ""


def _between(left: ast.expr, right: ast.expr, new: str) -> Iterator[tuple[int, int, int, str]]:
    if left.end_lineno == right.lineno:
        yield right.lineno, left.end_col_offset, right.col_offset, f" {new} "


def dies(tree: Path, file: str, marker: str) -> bool:
    """Returns whether a test in the same folder, or of a file that imports `file`, fails."""
    sys.path.insert(0, str(tree / "tests/helpers"))
    from affected import affected, imports_of

    paths = (path.relative_to(tree) for path in (tree / "tests").rglob("test_*.py"))
    near = affected([file], {str(path): imports_of(tree / path) for path in paths})
    chosen = sorted((found for found in near if near[found] < 2), key=near.get)
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-p", "no:cacheprovider", "-m", marker]
    paths = f"{tree}:{tree / 'tests/helpers'}"
    try:
        done = subprocess.run(
            [*command, *chosen], cwd=tree, env={**os.environ, "PYTHONPATH": paths},
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)  # 5: no test is near.


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", default=CORE, metavar="FILE", help="or folders")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at the same time")
    parser.add_argument("--marker", default="not slow", help="of pytest; empty: all tests")
    args = parser.parse_args()
    files = sorted(
        file
        for path in map(Path, args.paths)
        for file in (path.rglob("*.py") if path.is_dir() else [path])
    )
    by_line: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for file in files:
        for number, old, new in find_mutants(file):
            by_line.setdefault((str(file), number), []).append((old, new))
    draw = random.Random(args.seed)
    chosen = [
        (*place, *draw.choice(by_line[place])) for place in draw.sample(list(by_line), args.count)
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        trees: queue.Queue[Path] = queue.Queue()
        for job in range(args.jobs):
            trees.put(Path(folder, str(job)))
            shutil.copytree(".", Path(folder, str(job)), ignore=_IGNORED)

        def test(file: str, number: int, old: str, new: str) -> bool:
            path = (tree := trees.get()) / file
            whole = path.read_text("utf-8")
            lines = whole.split("\n")
            lines[number - 1] = new
            path.write_text("\n".join(lines), "utf-8")
            dead = dies(tree, file, args.marker)
            path.write_text(whole, "utf-8")
            trees.put(tree)
            print(f"{'died' if dead else 'SURVIVED'} {file}:{number}\n  {old}\n  {new}", flush=True)
            return dead

        died = sum(pool.map(lambda mutant: test(*mutant), chosen))
    print(f"seed {args.seed}: {died} of {args.count} mutants died, of {len(by_line)} lines")


if __name__ == "__main__":
    main()
