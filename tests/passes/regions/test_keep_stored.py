"""Operators that only move numbers work on int8 as it is stored, wherever scales allow that."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from onnx import parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.lower import lower
from mccompile.passes.regions.keep_stored import keep_stored
from tests.passes.program.interpreter import outputs

PARTS = "p = QuantizeLinear (a, s, z) q = QuantizeLinear (b, s, z)"
REALS = "pr = DequantizeLinear (p, s, z) qr = DequantizeLinear (q, s, z)"
RELU = "f = Relu (xr) g = QuantizeLinear (f, s2, z) gr = DequantizeLinear (g, s2, z)"
# What is written, and the operators that are left.
MOVED = {
    "parts": (f"a, b = Split <axis = 0> (xr, parts) {PARTS} {REALS} f = Sub (pr, qr) y = QuantizeLinear (f, s, z)",
              "Split DequantizeLinear DequantizeLinear Sub QuantizeLinear"),
    "one scale": ("f = Concat <axis = 0> (xr, xr) y = QuantizeLinear (f, s, z)", "Concat"),
    "two scales": (f"{RELU} j = Concat <axis = 0> (xr, gr) y = QuantizeLinear (j, s, z)",
                   "DequantizeLinear Relu QuantizeLinear DequantizeLinear QuantizeLinear Concat"),
    "zeros around": ("f = Pad (xr, pads) y = QuantizeLinear (f, s, z)", "Pad"),
    "nothing": (
        "a = QuantizeLinear (xr, s, z) b = DequantizeLinear (a, s, z) f = Abs (b) y = QuantizeLinear (f, s2, z)",
                "DequantizeLinear Abs QuantizeLinear"),
}  # fmt: skip
STAYS = {
    "another scale behind": "f = Slice (xr, first, last) y = QuantizeLinear (f, s2, z)",
    "other numbers around": "f = Pad (xr, pads, one) y = QuantizeLinear (f, s, z)",
    "read as floats": "f = Slice (xr, first, last) g = Relu (f) y = QuantizeLinear (g, s, z)",
    "an input that is asked for": "y = QuantizeLinear (xr, s, z)",
}


def graph_of(nodes: str) -> Graph:
    made = parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 17]> m (int8[2,3] x) => (int8[a,b] y)
        <float s = {{0.5}}, float s2 = {{0.25}}, int8 z = {{-3}}, int64[2] parts = {{1, 1}}, float one = {{1}},
         int64[4] pads = {{0, 1, 0, 1}}, int64[2] first = {{0, 0}}, int64[2] last = {{1, 3}}>
        {{ xr = DequantizeLinear (x, s, z) {nodes} }}""")
    return load_proto(made)


def moved(graph: Graph) -> str:
    keep_stored(graph)
    verify(graph, "keep_stored")
    return " ".join(node.op.name for node in graph.nodes)


@pytest.mark.parametrize("name", MOVED)
def test_results_stay_what_they_were(name: str) -> None:
    nodes, expected = MOVED[name]
    graph, x = graph_of(nodes), np.array([[-128, -3, 0], [1, 77, 127]], np.int8)
    before = outputs(lower(copy.deepcopy(graph)), {"x": x})["y"]
    assert moved(graph) == expected
    np.testing.assert_array_equal(outputs(lower(graph), {"x": x})["y"], before)


@pytest.mark.parametrize("name", STAYS)
def test_others_stay(name: str) -> None:
    graph = graph_of(STAYS[name])
    before = " ".join(node.op.name for node in graph.nodes)
    assert moved(graph) == before
