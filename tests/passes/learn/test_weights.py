"""Initializers that an exporter merged are told; what layers share on purpose is not."""

from __future__ import annotations

import pytest
from onnx import parser

from mccompile.frontend.load import load_proto
from mccompile.passes.learn.weights import learning, merged


@pytest.mark.parametrize(("bias", "said"), [("0, 0, 0", ["b learns as one weight of first, second"]), ("0, 1, 0", [])])
def test_equal_elements_that_several_layers_read_are_told(bias: str, said: list[str]) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 3] y)
        <float[3, 3] w1 = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3, 3] w2 = {{9, 8, 7, 6, 5, 4, 3, 2, 1}},
         float[3] b = {{{bias}}}> {{ h = Gemm(x, w1, b) y = Gemm(h, w2, b) }}""")
    for node, name in zip(model.graph.node, ("first", "second"), strict=True):
        node.name = name
    graph = load_proto(model)
    found = merged(learning(graph, "all", graph.outputs[0]))
    assert [text.partition(":")[0] for text in found] == said
