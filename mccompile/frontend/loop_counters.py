"""Values that a loop carries and adds the same number to in every trip: what torch's exporters count with, beside the
counter that Loop has.

Invariant: a step is what the body adds, whatever the loop's condition and trip count are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ..base.dtypes import of_onnx
from .signature import STANDARD_DOMAINS

Known = Callable[[str], np.ndarray | None]  # what a name outside of the body is, if it is constant


def steps_of(body: GraphProto, outer: Known) -> dict[int, int]:
    """What a trip adds to operands of a Loop, by their number."""
    makers = {name: node for node in body.node for name in node.output if name}
    tensors = {tensor.name: tensor for tensor in body.initializer}
    inputs = {entry.name for entry in body.input}

    def constant(name: str) -> np.ndarray | None:
        if name in tensors:
            return _small(tensors[name])
        return None if name in inputs else outer(name)

    found: dict[int, int] = {}
    for number in range(2, min(len(body.input), len(body.output) + 1)):
        step = _Steps(body.input[number].name, makers, constant).of(body.output[number - 1].name)
        if step is not None:
            found[number] = step
    return found


class _Steps:
    def __init__(self, state: str, makers: dict[str, NodeProto], constant: Known) -> None:
        self.state, self.makers, self.constant = state, makers, constant

    def of(self, name: str) -> int | None:
        node = self.maker(name)
        if node is None or node.op_type not in ("Add", "Sub") or len(node.input) != 2:
            return None
        first, second = node.input
        if self.same(first):
            step = self.number(second)
            return -step if step is not None and node.op_type == "Sub" else step
        return self.number(first) if node.op_type == "Add" and self.same(second) else None

    def maker(self, name: str) -> NodeProto | None:
        """The node behind those that hand on what they are given."""
        node = self.makers.get(name)
        while node is not None and node.op_type == "Identity" and node.domain in STANDARD_DOMAINS:
            node = self.makers.get(node.input[0])
        return node if node is not None and node.domain in STANDARD_DOMAINS else None

    def same(self, name: str) -> bool:
        while name != self.state:
            node = self.makers.get(name)
            if node is None or node.op_type != "Identity" or node.domain not in STANDARD_DOMAINS:
                return False
            name = node.input[0]
        return True

    def number(self, name: str) -> int | None:
        """One integer, which every type that it is cast to on the way holds. The last cast gives the type of the
        carried value, of which Loop asks whether it holds all that is counted."""
        types: list[int | None] = []  # None: that of the carried value
        while (node := self.makers.get(name)) is not None and node.domain in STANDARD_DOMAINS:
            if node.op_type == "Constant":
                return _held(_one(_given(node)), types)
            if node.op_type not in ("Cast", "CastLike", "Identity") or not node.input:
                return None
            if node.op_type == "CastLike" and types:
                return None
            if node.op_type != "Identity":
                types.append(next((a.i for a in node.attribute if a.name == "to"), None))
            name = node.input[0]
        if node is not None:
            return None
        return _held(_one(self.constant(name)), types)


def _held(number: int | None, types: Sequence[int | None]) -> int | None:
    """The number, where integers of all these types hold it."""
    for dtype in map(of_onnx, filter(None, types)):
        if number is None or dtype is None or not dtype.is_integer or not dtype.low <= number <= dtype.high:
            return None
    return number


def _given(node: NodeProto) -> np.ndarray | None:
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return _small(attribute.t)
        if attribute.name in ("value_int", "value_ints"):
            return np.asarray(helper.get_attribute_value(attribute))
    return None


def _small(tensor: TensorProto) -> np.ndarray | None:
    if tensor.data_location == TensorProto.EXTERNAL or np.prod(tensor.dims) != 1:
        return None
    return numpy_helper.to_array(tensor)


def _one(array: np.ndarray | None) -> int | None:
    """What every integer type that sizes are counted in can hold."""
    if array is None or array.size != 1 or array.dtype.kind != "i":
        return None
    number = int(array.reshape(-1)[0])
    return number if abs(number) < 1 << 31 else None
