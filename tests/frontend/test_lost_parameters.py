"""Layers whose parameters in PyTorch are not in the file."""

from __future__ import annotations

import pytest
from onnx import parser

from mccompile.frontend.lost_parameters import lost_parameters

CALL = "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_w, {}))"


@pytest.mark.parametrize(
    ("given", "operands", "told"), [("%p_b_bias", "", True), ("%p_b_bias", ", b", False), ("None", "", False)]
)
def test_a_bias_that_the_exporter_left_out_is_told(given: str, operands: str, told: bool) -> None:
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 18]> g (float[1, 2] x) => (float[1, 2] y)
        <float[2, 2] w = {{1, 2, 3, 4}}, float[2] b = {{0, 0}}> {{ y = Gemm(x, w{operands}) }}""")
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.fx_node", value=CALL.format(given))
    assert [text.partition(",")[0] for text in lost_parameters(model, {"w"})] == [
        "the file has no biases for the layers of w"
    ] * told
    assert not lost_parameters(model, set())


@pytest.mark.parametrize(("weight", "told"), [("%w", True), ("%p_w", False)])
def test_a_weight_that_was_computed_of_others_is_told(weight: str, told: bool) -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["": 18]> g (float[1, 2] x) => (float[1, 2] y)
        <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }""")
    call = f"%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, {weight}))"
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.fx_node", value=call)
    assert [text.partition(" in")[0] for text in lost_parameters(model, {"w"})] == ["what w is computed of"] * told
