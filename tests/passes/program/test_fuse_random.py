"""Random graphs: a program computes the same before and after fusion, and a graph before and after all graph passes."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import HealthCheck, given, settings

from mccompile.graph.ir import Graph
from mccompile.kernels.registry import Registry
from mccompile.passes.api import GRAPH, PROGRAM, Context, PassManager
from mccompile.passes.lower import lower
from mccompile.passes.program.fuse import fuse
from mccompile.pipeline import GRAPH_PASSES
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs
from tests.passes.random_graphs import graphs

CONTEXT = Context(targets.load("generic"), Registry.load(()))
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def some_input(graph: Graph) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(0)
    return {v.name: chance.uniform(-2, 2, v.type.static_shape).astype(np.float32) for v in graph.inputs}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-4, err_msg=name)


@QUICK
@given(graphs())
def test_fusion_changes_no_result(graph: Graph) -> None:
    inputs = some_input(graph)
    program = lower(graph)
    before = len(list(program.calls()))
    expected = outputs(program, inputs)
    fuse(program, CONTEXT)
    verify(program, "fuse")
    assert_same(outputs(program, inputs), expected)
    assert len(list(program.calls())) <= before


@QUICK
@given(graphs())
def test_graph_passes_change_no_result(graph: Graph) -> None:
    inputs = some_input(graph)
    expected = outputs(lower(copy.deepcopy(graph)), inputs)
    PassManager(CONTEXT).run(GRAPH, graph, GRAPH_PASSES)
    program = lower(graph)
    PROGRAM.verify(program, "lower")
    assert_same(outputs(program, inputs), expected)
