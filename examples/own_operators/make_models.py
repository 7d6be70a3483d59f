"""Writes a network with an operator that no compiler knows, and one with an int8 convolution."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser


def swish() -> onnx.ModelProto:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        swish (float[1, 8, 6, 6] x) => (float[1, 8, 6, 6] y) {
            a = com.acme.HardSwish8 <top = 6.0> (x)
            y = Add (a, x)
        }""")
    model.graph.value_info.append(helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [1, 8, 6, 6]))
    return model


def conv() -> onnx.ModelProto:
    """x and y are int8 behind QuantizeLinear; what lies between them is one convolution with scales per channel."""
    chance = np.random.default_rng(3)
    constants = {
        "x_scale": np.float32(0.05),
        "x_zero": np.int8(-3),
        "w": chance.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8),
        "w_scale": chance.uniform(0.002, 0.01, 8).astype(np.float32),
        "b": chance.integers(-2000, 2000, 8).astype(np.int32),
        "y_scale": np.float32(0.09),
        "y_zero": np.int8(5),
    }
    constants["b_scale"] = (constants["x_scale"] * constants["w_scale"]).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["x_float"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale"], ["w_float"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "b_scale"], ["b_float"], axis=0),
        helper.make_node("Conv", ["x_float", "w_float", "b_float"], ["y_float"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("QuantizeLinear", ["y_float", "y_scale", "y_zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "conv",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, [1, 4, 9, 9])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, [1, 8, 5, 5])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(swish(), "swish.onnx")
    onnx.save(conv(), "conv.onnx")
