"""Files with QuantizeLinear whose scales and zero points are inputs, so that others can be tried without a new session.

Invariant: only scales that are one constant are opened, and not those of results that are 0 to 1 by definition.
"""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, helper, numpy_helper

from ..base.records import dataclass
from .load import read_proto

_FIXED = "Softmax"
_ENDING = "_scale"


@dataclass(frozen=True)
class Number:
    name: str
    value: float


def scales_in(file: Path) -> dict[str, tuple[Number, Number]]:
    """The scale and the zero point of each quantized tensor, by the name that the scale is called after."""
    graph = read_proto(file).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    fixed = {name for node in graph.node if node.op_type == _FIXED for name in node.output}
    found = {}
    for node in graph.node:
        operands = list(node.input[1:])
        if node.op_type != "QuantizeLinear" or node.input[0] in fixed or len(operands) != 2:
            continue
        arrays = [numpy_helper.to_array(constants[name]) for name in operands if name in constants]
        if [array.size for array in arrays] == [1, 1]:
            scale, zero = (Number(name, float(array.item())) for name, array in zip(operands, arrays, strict=True))
            found[scale.name.removesuffix(_ENDING)] = scale, zero
    return found


def with_open_scales(file: Path) -> bytes:
    """The file's model with its scales and zero points as inputs, which have no shape."""
    opened = ModelProto()
    opened.CopyFrom(read_proto(file))
    names = {number.name for numbers in scales_in(file).values() for number in numbers}
    kinds = [(tensor.name, tensor.data_type) for tensor in opened.graph.initializer if tensor.name in names]
    opened.graph.input.extend(helper.make_tensor_value_info(name, kind, []) for name, kind in kinds)
    kept = [tensor for tensor in opened.graph.initializer if tensor.name not in names]
    del opened.graph.initializer[:]
    opened.graph.initializer.extend(kept)
    return bytes(opened.SerializeToString())
