"""Types of values where sizes are not those that the file names: they follow from the operators, one after the other.

Invariant: a size that is a number is right for every size that was asked for; one that has a range is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TypeProto, ValueInfoProto, helper, shape_inference

from ...graph.ir import Invalid
from .file import Tensor
from .onnx_nodes import OPSET, Shared

_FEW = 64  # elements of constants that sizes follow from


class Types:
    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._known: dict[str, TypeProto] = {}

    def declare(self, entries: Iterable[ValueInfoProto]) -> None:
        for entry in entries:
            self._known[entry.name] = entry.type

    def alike(self, name: str, other: str) -> None:
        """A value of a region that has the type of one outside."""
        if other in self._known:
            self._known[name] = self._known[other]

    def sized(self, tensor: Tensor, value: str) -> Tensor:
        """A tensor with the sizes of its value."""
        is_complex = tensor.type == "COMPLEX64"  # the two parts of a number lie along one more axis
        if value in self.shared.arrays:
            shape = self.shared.arrays[value].shape
            return replace(tensor, dims=shape[:-1] if is_complex else shape)
        if tensor.data is not None or value not in self._known:
            return tensor
        found = self._known[value].tensor_type
        if not found.HasField("shape"):
            return replace(tensor, dims=(None,) * len(tensor.dims))
        dims = tuple(d.dim_value if d.HasField("dim_value") else None for d in found.shape.dim)
        return replace(tensor, dims=dims[:-1] if is_complex else dims)

    def follow(self, nodes: list[NodeProto]) -> None:
        """What these nodes make."""
        if not nodes:
            return
        made = {name for node in nodes for name in node.output}
        read = [name for name in dict.fromkeys(_reads(nodes)) if name not in made]
        arrays = {name: self.shared.arrays[name] for name in read if name in self.shared.arrays}
        small = [name for name, array in arrays.items() if array.size <= _FEW]
        given = [ValueInfoProto(name=name, type=self._type(name)) for name in read if name not in small]
        graph = helper.make_graph(nodes, "types", given, [])
        graph.initializer.extend(self.shared.tensor(name) for name in small)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        try:
            found = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
        except shape_inference.InferenceError as error:
            raise Invalid(_short(str(error))) from None
        self.declare(found.value_info)

    def _type(self, name: str) -> TypeProto:
        array = self.shared.arrays.get(name)
        if array is not None:
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype)), array.shape)
        return self._known.get(name, TypeProto())


def _reads(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """What nodes read, their regions included."""
    for node in nodes:
        yield from (name for name in node.input if name)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _outer(attribute.g)


def _outer(graph: GraphProto) -> Iterator[str]:
    inside = {entry.name for entry in graph.input} | {name for node in graph.node for name in node.output}
    yield from (name for name in _reads(graph.node) if name not in inside)


def _short(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"its operands do not fit together: {lines[-1] if lines else ''}"
