"""Small models, written down node by node: what a spelling is made of.

Invariant: a net draws its numbers from a seed of its own, so that two spellings of one network have the same weights
if they draw them in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

CONTRIB = "com.microsoft"


class Net:
    def __init__(self, opset: int = 17, domains: tuple[str, ...] = (CONTRIB,)) -> None:
        self.opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        self.opset = opset
        self.chance = np.random.default_rng(7)
        self.nodes: list[NodeProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.dims: dict[str, tuple[int, int]] = {}
        self.wanted: dict[str, np.ndarray] | None = None  # the results, where a spelling says them itself
        self.bounds: dict[str, tuple[int, ...]] = {}

    def input(self, array: np.ndarray, name: str = "", shape: tuple[int | str | None, ...] | None = None) -> str:
        """An input with what it is run with; `shape` is what the file declares."""
        name = name or f"x{len(self.inputs)}"
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, dtype, array.shape if shape is None else shape))
        self.feeds[name] = array
        return name

    def op(self, name: str, *ins: str | np.ndarray, outs: int = 1, domain: str = "", **attributes: Any) -> str:
        """Adds a node; arrays become initializers. The name of its first result; others have `.1`, `.2` behind it."""
        made = f"v{len(self.nodes)}"
        operands = [self.constant(x) if isinstance(x, np.ndarray) else x for x in ins]
        results = [made, *(f"{made}.{number}" for number in range(1, outs))]
        self.nodes.append(helper.make_node(name, operands, results, f"{name}_{made}", domain=domain, **attributes))
        return made

    def ms(self, name: str, *ins: str | np.ndarray, outs: int = 1, **attributes: Any) -> str:
        """The same in onnxruntime's domain."""
        return self.op(name, *ins, outs=outs, domain=CONTRIB, **attributes)

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def model(self, *outputs: str) -> ModelProto:
        held = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        results = [ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "spelled", self.inputs, results, held)
        return helper.make_model(graph, opset_imports=self.opsets, ir_version=10)

    # -- numbers

    def floats(self, *shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        return self.chance.uniform(low, high, shape).astype(np.float32)

    def integers(self, low: int, high: int, *shape: int, dtype: type = np.int64) -> np.ndarray:
        return self.chance.integers(low, high, shape).astype(dtype)


def f(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)
