"""ONNX nodes in the making: names that are each taken once, and constants that the outermost graph keeps.

Invariant: what nodes of a region read from outside has a name that no region makes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ...base.names import Names

OPSET = 21  # the first with integers of 4 and 16 bits in QuantizeLinear
ONNX_TYPES = {
    "FLOAT32": TensorProto.FLOAT,
    "FLOAT16": TensorProto.FLOAT16,
    "FLOAT64": TensorProto.DOUBLE,
    "INT4": TensorProto.INT8,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "BOOL": TensorProto.BOOL,
}


class Shared:
    """What the graphs of one model share."""

    def __init__(self) -> None:
        self.names = Names()
        self.constants: list[TensorProto] = []
        self.arrays: dict[str, np.ndarray] = {}  # contents of constants by name
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def constant(self, array: np.ndarray, name: str = "") -> str:
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.names.take(name or f"constant_{len(self._known)}")
            self.arrays[self._known[key]] = array
            self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), self._known[key]))
        return self._known[key]

    def tensor(self, name: str) -> TensorProto:
        return numpy_helper.from_array(np.asarray(self.arrays[name], order="C"), name)


class Writer:
    """The nodes of one graph."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.nodes: list[NodeProto] = []
        self.title = ""  # of what is being written: names begin with it

    def ops(self, name: str, *inputs: str, outs: int, **attributes: Any) -> list[str]:
        """Adds a node; the names of its results."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        made = [self.shared.names.take(f"{self.title}/{name}") for _ in range(outs)]
        self.nodes.append(helper.make_node(name, inputs, made, made[0], **attributes))
        return made

    def op(self, name: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(name, *inputs, outs=1, **attributes)[0]

    def constant(self, array: np.ndarray, name: str = "") -> str:
        return self.shared.constant(array, name)

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: float, dtype: Any = np.float32) -> str:
        return self.constant(np.array(value, dtype))

    def named(self, value: str, name: str) -> str:
        """The value under the name that the file has for it, if it has one, where that can be had: right after it is
        made."""
        last = self.nodes[-1] if self.nodes else None
        if last is None or not name or list(last.output) != [value]:
            return value
        last.output[0] = last.name = self.shared.names.take(name)
        return str(last.output[0])

    def reshape(self, value: str, *shape: int) -> str:
        return self.op("Reshape", value, self.ints(*shape), **({"allowzero": 1} if 0 in shape else {}))

    def transposed(self, value: str, order: tuple[int, ...]) -> str:
        return value if order == tuple(range(len(order))) else self.op("Transpose", value, perm=order)

    def graph(self, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> GraphProto:
        return helper.make_graph(self.nodes, name, inputs, outputs)


def first_order(rank: int) -> tuple[int, ...]:
    """Of axes, from channels-last to channels-first."""
    return (0, rank - 1, *range(1, rank - 1))


def last_order(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)
