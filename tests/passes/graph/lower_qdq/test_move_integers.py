"""move_integers: graphs that hold more than quantizers pass through it."""

from __future__ import annotations

from onnx import parser

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
    assert "again is quantized as q is" in plan.facts_used
