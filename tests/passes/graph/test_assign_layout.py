"""Channels-last layout: what follows convolutions stays in it, and nobody pays for what gains nothing."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.kinds.map import Map
from mccompile.kinds.resize import Resize
from mccompile.ops.transpose import Transpose, TransposeInMemory
from mccompile.passes.api import GRAPH, Context, PassManager
from mccompile.passes.graph.assign_layout import assign_layout
from mccompile.passes.lower import lower
from mccompile.passes.program.fuse import fuse
from mccompile.pipeline import GRAPH_PASSES
from mccompile.program.ir import Program
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs
from tests.passes.random_graphs import graphs

SAME = "pads = [1,1,1,1]"
WEIGHTS = {
    "w": (6, 6, 3, 3), "k": (6, 1, 1), "one": (6, 6, 1), "three": (6, 6, 3, 3, 3), "s": (6,), "b": (6,), "p": (6, 1, 1),
    "v4": (6, 4, 1, 1), "v6": (6, 6, 1, 1), "v12": (6, 12, 1, 1),
}  # fmt: skip
INTS = {"cut": [0, 0, 0, 1, 0, 0, 0, 1], "low": [1], "high": [5], "ax1": [1], "ax2": [2, 3], "flat": [1, -1]}
FACTORS = {"twice": [1, 1, 2, 2]}


def graph_of(body: str, x: str = "1,6,8,8") -> Graph:
    text = f'<ir_version: 9, opset_import: ["" : 21]>\ng (float[{x}] x) => (y) {{ {body} }}'
    model = parser.parse_model(text)
    chance = np.random.default_rng(1)
    arrays = {name: chance.standard_normal(shape).astype(np.float32) for name, shape in WEIGHTS.items()}
    arrays |= {name: np.array(value, np.int64) for name, value in INTS.items()}
    arrays |= {name: np.array(value, np.float32) for name, value in FACTORS.items()}
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items() if n in used)
    return load_proto(model)


def optimized(graph: Graph, context: Context, without: str = "") -> Program:
    PassManager(context).run(GRAPH, graph, [step for step in GRAPH_PASSES if step.name != without])
    program = lower(graph)
    fuse(program, context)
    return program


def copies(program: Program) -> int:
    return sum(isinstance(call.kind, Map) and call.kind.is_copy for call in program.calls())


def in_onnx_order(program: Program) -> int:
    """Results of convolutions whose places lie next to each other, instead of their channels."""
    return sum(isinstance(call.kind, Conv) and call.outs[0].strides[1] != 1 for call in program.calls())


# Operators between two convolutions that the layout passes through, and how many channels they give.
BETWEEN = [
    ("Relu(a)", 6), ("PRelu(a, p)", 6), ("Add(a, k)", 6), ("Concat <axis = 1> (a, a)", 12), ("Pad(a, cut)", 6),
    ("Softmax <axis = 1> (a)", 6), ("Slice(a, low, high, ax1)", 4), ("ReduceMax(a, ax2)", 6), ("Clip(a)", 6),
    ("InstanceNormalization(a, s, b)", 6), ("GroupNormalization <num_groups = 3> (a, s, b)", 6),
    ("Resize <mode = \"linear\"> (a, , twice)", 6), ("MaxPool <kernel_shape = [2,2]> (a)", 6),
]  # fmt: skip


@pytest.mark.parametrize(("between", "channels"), BETWEEN)
def test_layout_goes_through(between: str, channels: int, context: Context) -> None:
    graph = graph_of(f"a = Conv <{SAME}> (x, w) c = {between} y = Conv(c, v{channels})")
    x = np.random.default_rng(0).standard_normal((1, 6, 8, 8)).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": x})["y"]
    program = optimized(graph, context)
    np.testing.assert_allclose(outputs(program, {"x": x})["y"], before, rtol=1e-3, atol=1e-3)
    assert not copies(program)
    assert in_onnx_order(program) <= 1  # the output


@pytest.mark.parametrize(
    ("body", "x"),
    [
        (f"a = Conv <{SAME}> (x, w) r = Relu(a) c = Conv <{SAME}> (r, w) y = Relu(c)", "1,6,8,8"),
        ("a = Conv <pads = [1,1]> (x, one) r = Relu(a) c = Conv(r, one) y = Relu(c)", "1,6,8"),
        ("a = Conv (x, three) r = Relu(a) c = Conv(r, three) y = Relu(c)", "1,6,8,8,8"),
    ],
    ids=["pictures", "lines", "volumes"],
)
def test_two_convolutions_are_two_calls(body: str, x: str, context: Context) -> None:
    """The first reads the input in the order of ONNX itself, the second writes the output so."""
    program = optimized(graph_of(body, x), context)
    assert len(list(program.calls())) == 2


@pytest.mark.parametrize("body", [
    'y = Resize <mode = "linear"> (a, , twice)',
    'r = Resize <mode = "linear"> (x, , twice) y = Conv(r, v6)',
])  # fmt: skip
def test_what_is_resized_lies_as_its_result_does(body: str, context: Context) -> None:
    """Inputs and outputs of the model keep their layout, and resizing does not change it on the way."""
    program = optimized(graph_of(f"a = Conv <{SAME}> (x, w) {body}"), context)
    (call,) = (call for call in program.calls() if isinstance(call.kind, Resize))
    assert call.ins[0].strides[3] == call.outs[0].strides[3] == 1


def test_what_gains_nothing_is_taken_back(context: Context) -> None:
    graph = graph_of(f"a = Conv <{SAME}> (x, w) y = Reshape(a, flat)")
    assign_layout(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Conv", "Reshape"]


def test_int8_normalizations_alone_are_not_transposed(context: Context) -> None:
    body = """
        a = DequantizeLinear(q, s, z) b = LayerNormalization(a, g, g) c = QuantizeLinear(b, s, z)
        d = DequantizeLinear(c, s, z) e = Add(d, a) f = QuantizeLinear(e, s, z) h = DequantizeLinear(f, s, z)
        i = LayerNormalization(h, g, g) r = QuantizeLinear(i, s, z)
    """
    head = "g (uint8[1,12,24] q) => (uint8[1,12,24] r) <float s = {0.05}, uint8 z = {120}, float[24] g = {"
    text = f'<ir_version: 9, opset_import: ["" : 21]> {head}{",".join(["1.0"] * 24)}}}> {{ {body} }}'
    graph = load_proto(parser.parse_model(text))
    PassManager(context).run(GRAPH, graph, GRAPH_PASSES)
    names = [node.op.name for node in graph.nodes]
    assert names.count("NormInteger") == 2 and not any(isinstance(node.op, Transpose) for node in graph.nodes)


def test_transposes_of_the_model_cancel(context: Context) -> None:
    body = "t = Transpose <perm = [0,2,3,1]> (a) r = Relu(t) u = Transpose <perm = [0,3,1,2]> (r)"
    graph = graph_of(f"a = Conv <{SAME}> (x, w) {body} y = Conv(u, w)")
    program = optimized(graph, context)
    transposes = [type(node.op) for node in graph.nodes if isinstance(node.op, Transpose)]
    assert transposes == [TransposeInMemory, Transpose]  # one in memory, which the convolution writes, and its view
    assert len(list(program.calls())) == 2


def test_a_chain_stays_channels_last(check: Any) -> None:
    """One transpose in memory, for the first convolution to write, and views."""
    check(
        assign_layout,
        """
        input %x: f32[1,2,4,4]
        const %w: f32[2,2,1,1] = #w
        %a: f32[1,2,4,4] = Conv(%x, %w) from "a"
        %r: f32[1,2,4,4] = Relu(%a) from "r"
        %y: f32[1,2,4,4] = Conv(%r, %w) from "y"
        output %y
        """,
        """
        input %x: f32[1,2,4,4]
        const %w: f32[2,2,1,1] = #w
        %a: f32[1,2,4,4] = Conv(%x, %w) from "a"
        %"a/last": f32[1,4,4,2] = mccompile.TransposeInMemory(%a) {perm=(0, 2, 3, 1)} from "a"
        %"a/first": f32[1,2,4,4] = Transpose(%"a/last") {perm=(0, 3, 1, 2)} from "a"
        %"r/last": f32[1,4,4,2] = Relu(%"a/last") from "r"
        %"r/first": f32[1,2,4,4] = Transpose(%"r/last") {perm=(0, 3, 1, 2)} from "r"
        %y: f32[1,2,4,4] = Conv(%"r/first", %w) from "y"
        output %y
        """,
        w=np.ones((2, 2, 1, 1), np.float32),
    )


CONTEXT = Context(targets.load("generic"), Registry.load(()))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graphs())
def test_layout_never_leaves_more_copies_than_it_found(graph: Graph) -> None:
    without = copies(optimized(copy.deepcopy(graph), CONTEXT, "assign_layout"))
    assert copies(optimized(graph, CONTEXT)) <= without
