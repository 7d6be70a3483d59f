"""Nodes and constants of a graph that is written, under names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

I16, I32, I64, U32, U64 = (
    getattr(TensorProto, name) for name in ("INT16", "INT32", "INT64", "UINT32", "UINT64")
)  # element types


class Writer:
    def __init__(self, around: Writer | None = None) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = around.constants if around else []
        self.taken: list[str] = around.taken if around else []  # bodies read what is around them

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [self.name(op.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], **attributes))
        return names

    def name(self, stem: str) -> str:
        self.taken.append(f"{stem}_{len(self.taken)}")
        return self.taken[-1]

    def rename(self, name: str) -> None:
        """The newest result."""
        self.nodes[-1].output[0] = name

    def constant(self, contents: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(contents, name))
        return name

    def floats(self, contents: Any) -> str:
        return self.constant(np.asarray(contents, np.float32))

    def ints(self, *contents: int) -> str:
        return self.constant(np.array(contents, np.int64))

    def of(self, element: int, contents: Any) -> str:
        return self.constant(np.asarray(contents, helper.tensor_dtype_to_np_dtype(element)))

    def cast(self, x: str, element: int) -> str:
        return self.node("Cast", x, to=element)

    def cut(self, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
        return self.node("Slice", x, *(self.ints(each) for each in (start, end, axis, step)[: 3 + (step != 1)]))

    def shaped(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.ints(*shape))

    def body(self, inputs: Sequence[tuple[str, int, tuple[int, ...]]], outputs: Sequence[str]) -> GraphProto:
        """What was written, as the body of a node of the graph around: inputs with type and shape."""
        given = [helper.make_tensor_value_info(*each) for each in inputs]
        return helper.make_graph(self.nodes, "body", given, [helper.make_empty_tensor_value_info(n) for n in outputs])
