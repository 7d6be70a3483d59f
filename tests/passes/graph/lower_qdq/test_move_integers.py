"""move_integers: graphs that hold more than quantizers pass through it."""

from __future__ import annotations

from onnx import parser

from mccompile.base.dtypes import i8
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto


def test_nodes_without_inputs_stand_beside_a_quantized_tensor() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]> mixed (float[4,2] x) => (float[4,2] y)
        <float s = {0.5}, int8 z = {3}, float s2 = {0.5}, int8 z2 = {3}>
        {
            r = RandomNormal<seed = 1.0, shape = [4, 2]>()
            q = QuantizeLinear(x, s, z)
            again = QuantizeLinear(x, s2, z2)
            a = DequantizeLinear(q, s, z)
            b = DequantizeLinear(again, s2, z2)
            c = Add(a, b)
            y = Add(c, r)
        }
    """
    plan = compile_graph(load_proto(parser.parse_model(text), None, {}, {}), Options(), "mixed").plan
    assert "again is quantized as q is" in plan.assumptions


def test_parts_that_are_quantized_alike_are_parts_of_one_quantized_tensor() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]> parts (int8[1,4,6] x) => (int8[1,4,6] y)
        <float s = {0.5}, int8 o = {3}, float[4,4] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8},
         float t = {0.25}, int8 p = {1}>
        {
            wq = QuantizeLinear(w, s, o)
            wd = DequantizeLinear(wq, s, o)
            xd = DequantizeLinear(x, s, o)
            m = MatMul(wd, xd)
            a, b = Split<axis = 2, num_outputs = 2>(m)
            turned = Concat<axis = 2>(b, a)
            y = QuantizeLinear(turned, t, p)
        }
    """
    graph = load_proto(parser.parse_model(text))
    plan = compile_graph(graph, Options(), "parts").plan
    written = [argument.type.dtype for step in plan.steps() for argument in step.arguments if argument.written]
    assert set(written) == {i8}
