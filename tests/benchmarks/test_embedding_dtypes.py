"""The table of types: what it costs to quantise vectors whose neighbours are known."""

from __future__ import annotations

import numpy as np

from benchmarks.models.embedding_dtypes import Query, print_table


def test_a_row_for_each_type(capsys):
    generator = np.random.default_rng(0)
    queries = generator.standard_normal((50, 16)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    order = generator.permutation(50)
    print_table([Query("a → b", queries, queries[order], np.argsort(order))], 8)
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("| vectors | bytes per vector | a → b | lost, points | CPU seconds")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[:2] for row in cells] == [
        ["float32", "64"],
        ["float16", "32"],
        ["int8", "16"],
        ["binary", "2"],
        ["binary, 8 candidates rescored by int8", "2 + 16"],
        ["binary, 8 candidates rescored by float32", "2 + 64"],
    ]
    # Each vector is its own nearest; of the pairs with equal bits, one is chosen.
    assert [row[2:4] for row in cells[:3]] == [["100.00", "0.00"]] * 3
    assert [row[2:4] for row in cells[4:]] == [["100.00", "0.00"]] * 2
