"""What integers of inputs and outputs stand for is found behind whatever moves them, and told in header and report."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.passes.io.io_forms import InputForm
from mccompile.passes.io.io_schemes import io_schemes
from mccompile.plan.handed import Quantized

HEAD = '<ir_version: 8, opset_import: ["": 17]>'
CONSTANTS = "<float s = {0.5}, int8 z = {-7}, float t = {0.25}, float[2] cs = {0.5, 2.0}, int8[2] cz = {1, -1}>"


def schemes(text: str) -> dict[str, Quantized]:
    return io_schemes(load_proto(parser.parse_model(f"{HEAD} {text}")))


def net(nodes: str, x: str = "int8[1,2,3,4]", y: str = "int8[1,2,3,4]") -> str:
    return f"g ({x} x) => ({y} y) {CONSTANTS} {{ {nodes} }}"


def test_one_scale_for_all() -> None:
    found = schemes(net("a = DequantizeLinear(x, s, z) b = Relu(a) y = QuantizeLinear(b, t, z)"))
    assert found == {"x": Quantized((0.5,), (-7,), None), "y": Quantized((0.25,), (-7,), None)}


def test_a_scale_for_each_channel_goes_with_its_axis() -> None:
    nodes = """a = Transpose<perm = [0, 2, 3, 1]>(x) b = DequantizeLinear<axis = 3>(a, cs, cz)
        c = QuantizeLinear<axis = 3>(b, cs, cz) y = Transpose<perm = [0, 3, 1, 2]>(c)"""
    wanted = Quantized((0.5, 2.0), (1, -1), 1)
    assert schemes(net(nodes)) == {"x": wanted, "y": wanted}


def test_reshapes_keep_what_is_for_all_only() -> None:
    nodes = "f = Flatten(x) a = DequantizeLinear(f, s, z) y = QuantizeLinear(a, t, z)"
    assert schemes(net(nodes, y="int8[1,24]"))["x"].axis is None
    nodes = "f = Flatten(x) a = DequantizeLinear<axis = 0>(f, cs, cz) y = QuantizeLinear(a, t, z)"
    assert "x" not in schemes(net(nodes, "int8[2,2,3,4]", "int8[2,12]"))


@pytest.mark.parametrize(
    "nodes",
    [
        "a = DequantizeLinear(x, s, z) b = DequantizeLinear(x, t, z) c = Add(a, b) y = QuantizeLinear(c, t, z)",
        "a = DequantizeLinear(x, s, z) y = Cast<to = 3>(x)",
        "y = Abs(x)",
    ],
)
def test_what_readers_do_not_agree_on_is_not_told(nodes: str) -> None:
    assert "x" not in schemes(net(nodes))


def test_header_and_report_say_it() -> None:
    text = net("a = DequantizeLinear<axis = 1>(x, cs, cz) b = Relu(a) y = QuantizeLinear(b, t, z)")
    files = compile_graph(load_proto(parser.parse_model(f"{HEAD} {text}")), Options(), "net").files
    header = files["net.h"].decode()
    for macro in (
        "NET_INPUT_X_CHANNELS 2u /* along axis 1, each with a scale and a zero point */",
        "NET_INPUT_X_SCALES {0.5f, 2.0f}",
        "NET_INPUT_X_ZERO_POINTS {1, (-1)}",
        "NET_OUTPUT_Y_SCALE 0.25f /* an integer q stands for (q - zero point) * scale */",
        "NET_OUTPUT_Y_ZERO_POINT (-7)",
    ):
        assert f"#define {macro}\n" in header
    report = json.loads(files["report.json"])
    assert report["inputs"][0]["quantized"] == {"scales": [0.5, 2.0], "zeros": [1, -1], "axis": 1}
    assert report["outputs"][0]["quantized"] == {"scales": [0.25], "zeros": [-7], "axis": None}


def test_what_is_handed_over_raw_is_told() -> None:
    nodes = "q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) y = QuantizeLinear(a, t, z)"
    text = net(nodes, "float[1,2,3,4]")
    options = Options(inputs={"x": InputForm(raw=True)})
    package = compile_graph(load_proto(parser.parse_model(f"{HEAD} {text}")), options, "net")
    assert package.plan.inputs[0].type.dtype.numpy == np.int8
    assert package.plan.inputs[0].quantized == Quantized((0.5,), (-7,), None)
