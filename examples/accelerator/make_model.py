"""mlp.onnx: two dense layers, which the toy chip takes, a Softmax, which it does not."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

draw = np.random.default_rng(1).standard_normal


def number(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array((draw(shape) / 16).astype(np.float32), name)


nodes = [
    helper.make_node("Gemm", ["x", "w1", "b1"], ["h1"], "dense1"),
    helper.make_node("Relu", ["h1"], ["h2"], "relu"),
    helper.make_node("Gemm", ["h2", "w2", "b2"], ["h3"], "dense2"),
    helper.make_node("Softmax", ["h3"], ["y"], "softmax"),
]
graph = helper.make_graph(
    nodes,
    "mlp",
    [helper.make_tensor_value_info("x", 1, [1, 256])],
    [helper.make_tensor_value_info("y", 1, [1, 10])],
    [number("w1", 256, 128), number("b1", 128), number("w2", 128, 10), number("b2", 10)],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "mlp.onnx")
