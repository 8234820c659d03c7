"""The step of several replicas as a TPU would compile it: on the device alone, of known shapes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import forked
import pytest

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("step_graph_worker.py")
# What XLA has no kernels for: Python, strings, tables and what parses text.
HOST = ("Py", "EagerPy", "String", "Regex", "Unicode", "Lookup", "HashTable", "Print", "Parse")
# What computes shapes, of which XLA makes constants: for a gradient, and the lengths of what a
# TensorArray concatenates.
SHAPES = re.compile(
    r"BroadcastGradientArgs |TensorListConcatV2 \S+:1 |\S+ \S+redundant_placeholder"
)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    out = tmp_path_factory.mktemp("graphs") / "graphs.json"
    forked.finish([forked.Process(WORKER, "2", out)], timeout=300)
    return json.loads(out.read_text("utf-8"))


def test_no_operation_is_one_of_the_host(graphs):
    assert set(graphs) == {"dual", "dual_chunked", "mlm", "mlm_sampled", "joint"}
    for name, graph in graphs.items():
        assert {"CollectiveReduceV2", "MatMul", "IteratorGetNext"} <= set(graph["operations"])
        assert [kind for kind in graph["operations"] if kind.startswith(HOST)] == [], name


def unknown_shapes(graph):
    return [line for line in graph["unknown"] if not SHAPES.match(line)]


@pytest.mark.parametrize("name", ["dual", "dual_chunked", "mlm", "joint"])
def test_all_shapes_are_known(graphs, name):
    assert unknown_shapes(graphs[name]) == []


def test_a_sampled_softmax_has_as_many_columns_as_distinct_tokens(graphs):
    """The exception; XLA bounds `Unique`, see test_compute.py."""
    kinds = {line.split()[0] for line in unknown_shapes(graphs["mlm_sampled"])}
    assert "Unique" in kinds
