"""What is calculated between a reshape and the reshape back is calculated in the shape before."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from onnx import parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.api import Context
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.passes.graph.move_reshape import move_reshape
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs


def graph_of(body: str, x: str = "2,3,4,4", y: str = "2,3,4,4", more: str = "") -> Graph:
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[{x}] x) => (float[{y}] y{more})
    <int64[3] flat = {{2, 3, 16}}, int64[4] whole = {{2, 3, 4, 4}}, int64[2] rows = {{6, 16}},
     int64[3] lines = {{6, 4, 4}}, float[3,1] each = {{1, 2, 3}}, float one = {{7}}, float[4] last = {{4, 3, 2, 1}},
     float[16] places = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, float[3,16] both = {{
     0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
     9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}> {{ {body} }}"""
    return load_proto(parser.parse_model(text))


def moved(graph: Graph, context: Context) -> str:
    move_reshape(graph, context)
    eliminate_dead(graph, context)
    verify(graph, "move_reshape")
    return " ".join(node.op.name for node in graph.nodes)


# What is written, and the operators that are left.
THERE_AND_BACK = {
    "a bias per channel": ("f = Reshape(x, flat) a = Add(f, each) y = Reshape(a, whole)", "Add"),
    "the constant first": ("f = Reshape(x, flat) a = Sub(each, f) y = Reshape(a, whole)", "Sub"),
    "one number": ("f = Reshape(x, rows) a = Mul(f, one) y = Reshape(a, whole)", "Mul"),
    "one per place": ("f = Reshape(x, rows) a = Mul(f, places) y = Reshape(a, whole)", "Mul"),
    "one per channel and place": ("f = Reshape(x, flat) a = Mul(f, both) y = Reshape(a, whole)", "Mul"),
    "one per column": ("f = Reshape(x, lines) a = Mul(f, last) y = Reshape(a, whole)", "Mul"),
    "two": ("f = Reshape(x, flat) a = Mul(f, each) b = Relu(a) y = Reshape(b, whole)", "Mul Relu"),
    "by squeezing": ("f = Flatten <axis = 3> (x) a = Add(f, last) y = Reshape(a, whole)", "Add"),
}  # fmt: skip


@pytest.mark.parametrize("name", THERE_AND_BACK)
def test_the_reshapes_are_gone_and_the_results_stay(name: str, context: Context) -> None:
    body, expected = THERE_AND_BACK[name]
    graph = graph_of(body)
    x = np.random.default_rng(0).uniform(-4, 4, (2, 3, 4, 4)).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": x})["y"]
    assert moved(graph, context) == expected
    np.testing.assert_array_equal(outputs(lower(graph), {"x": x})["y"], before)


# The shape of x, what is written, the shape of y.
STAYS = {
    "one along half an axis": ("2,3,16", "w = Reshape(x, whole) a = Mul(w, last) y = Reshape(a, flat)", "2,3,16"),
    "another shape behind": ("2,3,4,4", "f = Reshape(x, flat) a = Add(f, each) y = Reshape(a, rows)", "6,16"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_others_stay(name: str, context: Context) -> None:
    x, body, y = STAYS[name]
    graph = graph_of(body, x, y)
    before = " ".join(node.op.name for node in graph.nodes)
    assert moved(graph, context) == before


@pytest.mark.parametrize("between", ["f", "a"])
def test_what_somebody_else_reads_stays(between: str, context: Context) -> None:
    body = "f = Reshape(x, flat) a = Add(f, each) y = Reshape(a, whole)"
    more = f", float[2,3,16] {between}" if between == "a" else ", float[2,3,16] n"
    graph = graph_of(body if between == "a" else f"{body} n = Neg(f)", more=more)
    before = sorted(node.op.name for node in graph.nodes)
    assert sorted(moved(graph, context).split()) == before
