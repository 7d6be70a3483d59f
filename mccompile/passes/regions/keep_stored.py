"""Operators that only move numbers work on these as they are stored: between a DequantizeLinear and a QuantizeLinear of
the same scale they change nothing. What is joined with another scale is quantized in front.

Invariant: every result stays what it was, bit for bit.
"""

from __future__ import annotations

from ...base.constant import Constant
from ...base.names import new_name
from ...graph.ir import Graph, Node, Value
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ..graph.eliminate_dead import drop_dead

_MOVES = (
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Transpose",
    "MaxPool",
    "Split",
    "Slice",
    "Concat",
    "Resize",
    "Pad",
)
_Parameters = tuple[float, float, str]


def keep_stored(graph: Graph) -> None:
    taken = {value.name for value in graph.values()}
    for node in list(graph.nodes):
        if isinstance(node.op, QuantizeLinear):
            _drop(graph, node)
        elif node.op.name in _MOVES:
            _move(graph, node, taken)
    graph.sort()
    drop_dead(graph)


def _drop(graph: Graph, node: Node) -> None:
    """A QuantizeLinear that undoes the DequantizeLinear in front of it."""
    before = node.inputs[0].producer if node.inputs[0] is not None else None
    if before is None or not isinstance(before.op, DequantizeLinear) or before.inputs[0] is None:
        return
    known, stored = _parameters(node), before.inputs[0]
    same = known is not None and known == _parameters(before)
    if same and stored.constant is None and not graph.is_output(node.output):
        graph.replace(node.output, stored)


def _move(graph: Graph, node: Node, taken: set[str]) -> None:
    readers = [reader for value in node.present_outputs for reader, _ in value.uses]
    found = {_parameters(reader) for reader in readers if isinstance(reader.op, QuantizeLinear)}
    known = next(iter(found)) if len(found) == 1 else None
    alone = len(node.outputs) == sum(1 for _ in node.present_outputs) and not any(
        map(graph.is_output, node.present_outputs)
    )
    if known is None or not alone or not all(isinstance(reader.op, QuantizeLinear) for reader in readers):
        return
    if node.op.name == "Resize" and vars(node.op)["mode"] != "nearest":
        return
    inputs = list(node.inputs)
    for place in range(len(inputs) if node.op.name == "Concat" else 1):
        moved = _as_stored(graph, inputs[place], readers[0], known, taken, node.op.name == "Concat")
        if moved is None:
            return
        inputs[place] = moved
    if node.op.name == "Pad":
        fill = _fill(node, known, readers[0], taken)
        if fill is None:
            return
        inputs[2:3] = [fill]
    made = graph.compute(node.op, inputs, [new_name(f"{v.name}/as_stored", taken) for v in node.present_outputs],
                         node.provenance)  # fmt: skip
    for old, new in zip(list(node.present_outputs), made, strict=True):
        for reader in [reader for reader, _ in old.uses]:
            graph.replace(reader.output, new)


def _as_stored(
    graph: Graph, real: Value | None, reader: Node, known: _Parameters, taken: set[str], joins: bool
) -> Value | None:
    node = real.producer if real is not None else None
    if real is None or node is None or not isinstance(node.op, DequantizeLinear) or node.inputs[0] is None:
        return None
    if _parameters(node) == known:
        return node.inputs[0]
    if not joins or node.inputs[0].constant is not None or _parameters(node) is None:
        return None
    name = new_name(f"{real.name}/quantized", taken)
    return graph.compute(reader.op, [real, *reader.inputs[1:]], [name], node.provenance)[0]


def _fill(node: Node, known: _Parameters, reader: Node, taken: set[str]) -> Value | None:
    """What a Pad fills with, as the QuantizeLinear behind it stores it: 0 alone, which scales do not round."""
    value = node.inputs[2] if len(node.inputs) > 2 else None
    is_zero = value is None or (value.constant is not None and not value.constant.array.any())
    mode = vars(node.op)["mode"]
    if mode != "constant" or not is_zero:
        return None
    zero = reader.inputs[2] if len(reader.inputs) > 2 else None
    if zero is None or zero.constant is None:
        return None
    return Value.of_constant(new_name(f"{node.output.name}/zero", taken), Constant.of(zero.constant.array.reshape(())))


def _parameters(node: Node) -> _Parameters | None:
    """Scale, zero point and type, where these are one constant for all."""
    scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    if scale is None or scale.constant is None or scale.constant.array.size != 1:
        return None
    if zero is None or zero.constant is None or zero.constant.array.size != 1:
        return None
    return float(scale.constant.array.item()), float(zero.constant.array.item()), zero.type.dtype.name
