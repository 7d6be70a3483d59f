"""Random networks over time, grown layer by layer.

Shapes are what onnxruntime makes of each node, so that nothing about a network is taken from mccompile. What
onnxruntime does not run is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET, LARGEST = 18, 20_000  # elements of a tensor


class NotRun(Exception):
    """onnxruntime does not run this node."""


class Network:
    """Grows node by node. Names stand for values, whose contents for random frames are known."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}
        self.values: dict[str, np.ndarray] = {}
        spatial = self.one_of([1, 1, 2])
        self.axis = 2 if spatial == 1 else self.one_of([2, 3])
        shape = [self.one_of([1, 1, 1, 2]), self.one_of([1, 2, 4]), *(self.one_of([3, 4, 5]) for _ in range(spatial))]
        shape[self.axis] = self.length = int(self.chance.integers(5, 26))
        self.values["x"] = self.floats(*shape)

    def one_of(self, choices: list[Any]) -> Any:
        return choices[int(self.chance.integers(len(choices)))]

    def number(self, low: int, high: int) -> int:
        return int(self.chance.integers(low, high + 1))

    def may(self, probability: float = 0.5) -> bool:
        return bool(self.chance.random() < probability)

    def floats(self, *shape: int) -> np.ndarray:
        return (self.chance.standard_normal(shape) / 2).astype(np.float32)

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def op(self, kind: str, *operands: str, results: int = 1, **attributes: Any) -> str:
        """The name of the last result."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(results)]
        node = helper.make_node(kind, list(operands), names, **attributes)
        found = run_node(node, {name: self.contents(name) for name in operands if name})
        if not all(array.size and array.size <= LARGEST for array in found):
            raise NotRun
        self.nodes.append(node)
        self.values.update(zip(names, found, strict=True))
        return names[-1]

    def contents(self, name: str) -> np.ndarray:
        return self.values[name] if name in self.values else self.weights[name]

    def model(self, outputs: list[str]) -> ModelProto:
        def info(name: str) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, self.values[name].shape)

        used = {name for node in self.nodes for name in node.input}
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used]
        graph = helper.make_graph(self.nodes, "g", [info("x")], [info(name) for name in outputs], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def run_node(node: Any, operands: dict[str, np.ndarray]) -> list[np.ndarray]:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in operands.items()
    ]
    made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "g", infos, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return [np.asarray(array) for array in session.run(None, operands)]
    except Exception as refused:  # onnxruntime has no base class of its exceptions
        raise NotRun from refused


Grow = Callable[[Network, str], str]
