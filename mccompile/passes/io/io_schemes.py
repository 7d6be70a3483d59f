"""The real values that integers of inputs and outputs represent: scales and zero points of the operators that read or
write them, also if other operators move the elements in between.

They come from weights, so they are told to programs and people, and nothing is compiled by them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.ir import Graph, Value
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ...ops.transpose import Transpose
from ...plan.handed import Quantized
from ..quantized.quantized_tensors import Scheme, scheme

_MOVES = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")


def io_schemes(graph: Graph) -> dict[str, Quantized]:
    """By name; nothing of what is not an integer, or not quantized by constants that everybody agrees on."""
    found: dict[str, Quantized] = {}
    for value in (value for value in graph.inputs if value.type.dtype.is_integer):
        _note(found, value.name, set(_read(value, tuple(range(value.type.rank)))))
    for value in (value for value in graph.outputs if value.type.dtype.is_integer):
        made = _made(value, tuple(range(value.type.rank)))
        _note(found, value.name, {made})
    return found


def _note(found: dict[str, Quantized], name: str, schemes: set[Quantized | None]) -> None:
    agreed = schemes.pop() if len(schemes) == 1 else None
    if agreed is not None:
        found[name] = agreed


def _read(value: Value, axes: tuple[int, ...] | None) -> Iterator[Quantized | None]:
    """As each reader takes it; axis i of the value is axis `axes[i]` of the input, where that is known."""
    for node, position in value.uses:
        if isinstance(node.op, DequantizeLinear) and position == 0:
            yield _seen(scheme(node), axes)
        elif node.op.name in _MOVES and position == 0:
            inner: tuple[int, ...] | None = None
            if isinstance(node.op, Transpose) and axes:
                inner = tuple(axes[a] for a in node.op.order(len(axes)))
            yield from _read(node.output, inner)
        else:
            yield None


def _made(value: Value, axes: tuple[int, ...] | None) -> Quantized | None:
    node = value.producer
    if node is None:
        return None
    if isinstance(node.op, QuantizeLinear):
        return _seen(scheme(node), axes)
    source = node.inputs[0] if node.inputs and node.op.name in _MOVES else None
    if source is None:
        return None
    inner: tuple[int, ...] | None = None
    if isinstance(node.op, Transpose) and axes:
        order = node.op.order(len(axes))
        inner = tuple(axes[order.index(a)] for a in range(len(order)))
    return _made(source, inner)


def _seen(found: Scheme | None, axes: tuple[int, ...] | None) -> Quantized | None:
    if found is None or (found.axis is not None and axes is None):
        return None
    axis = None if found.axis is None or axes is None else axes[found.axis]
    return Quantized(tuple(float(scale) for scale in found.scales), found.zeros, axis)
