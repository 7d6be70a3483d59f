"""What learns is computed in floats: behind weights that learn, tensors are not rounded to integers.

A gradient needs a slope, and rounding has none. From the first layer that learns on, pairs of QuantizeLinear and
DequantizeLinear only saturate, as they did: what they leave lies between the smallest and the largest number that the
integers could stand for. In front of it all stays as it is, and is computed in integers. Operators that only move
elements, or choose the largest, move floats instead. Outputs are still rounded, as the file says.

Invariant: the result is the file's network in real arithmetic but for rounding behind what learns; where something else
computes with such integers, they stay, and no gradient passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...graph.ir import Graph, Node, Value, reads
from ...ops.api import resolve
from ...ops.identity import Identity
from ...ops.pool import MaxPool
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ...ops.reshape import SameElements
from ...ops.rules.backward import Writer
from ...ops.slice import Slice
from ...ops.transpose import Transpose

_ALIKE = (Identity, MaxPool, SameElements, Slice, Transpose)  # they give elements of their first operand
Scheme = tuple[float, int]  # scale and zero point


def leave_integers(graph: Graph, learned: Iterable[Value]) -> None:
    moving, writer = set(learned), Writer(graph, resolve)
    floats = dict[Value, tuple[Value, Scheme]]()  # instead of integers that were rounded from what moves
    for node in list(graph.nodes):
        x = node.inputs[0] if node.inputs else None
        if isinstance(node.op, QuantizeLinear) and x in moving and (scheme := _scheme(node)):
            assert x is not None
            floats[node.output] = _saturated(writer, node, x, scheme), scheme
        elif isinstance(node.op, _ALIKE) and x in floats and len(list(node.present_outputs)) == 1:
            instead, scheme = floats[x]
            writer.provenance = node.provenance
            floats[node.output] = writer.node(node.op, [instead, *node.inputs[1:]], 1)[0], scheme
        elif isinstance(node.op, DequantizeLinear) and x in floats and _scheme(node) == floats[x][1]:
            graph.replace(node.output, floats[x][0])
            moving.add(floats[x][0])
        elif any(value in moving for value in reads(node)):
            moving.update(value for value in node.present_outputs if value.type.dtype.is_float)
    graph.sort()


def _scheme(node: Node) -> Scheme | None:
    """None: not one for all elements, one that only a run knows, or not one of integers."""
    scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    if scale is None or scale.constant is None or scale.type.count != 1:
        return None
    if zero is None:
        return float(scale.constant.array.item()), 0
    known = zero.constant is not None and zero.type.dtype.is_integer
    return (float(scale.constant.array.item()), int(zero.constant.array.item())) if known and zero.constant else None


def _saturated(writer: Writer, node: Node, x: Value, scheme: Scheme) -> Value:
    scale, zero = scheme
    integers = node.output.type.dtype
    writer.provenance = node.provenance
    low, high = ((bound - zero) * scale for bound in (integers.low, integers.high))
    return writer.op("Clip", x, writer.number(low, x), writer.number(high, x))
