"""Numbers that were rounded to integers have no slope that says anything: nothing learns through them in silence."""

from __future__ import annotations

import pytest
from onnx import parser

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.passes.learn.gradients import gradients

BEHIND = {
    "dequantized": "r = DequantizeLinear(q, s, z)",
    "cast": "r = Cast <to = 1> (q)",
    "product": "p = MatMulInteger(q, w) r = Cast <to = 1> (p)",
}


@pytest.mark.parametrize("form", BEHIND)
def test_what_learns_is_not_rounded(form: str) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 2] x) => (float y) <float s = {{0.5}}, int8 z = {{0}}, int8[2, 2] w = {{1, 2, 3, 4}}> {{
            q = QuantizeLinear(x, s, z) {BEHIND[form]} y = ReduceSum <keepdims = 0> (r) }}""")
    graph = load_proto(model)
    with pytest.raises(UnsupportedModel, match="integers"):
        gradients(graph, graph.outputs[0], graph.inputs)
