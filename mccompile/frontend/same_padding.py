"""Windows with `auto_pad` SAME and a stride over sizes that are known only at run time: how much is padded follows from
them, so the padding becomes a Pad in front of a window without any.

Invariant: the result has ceil(size / stride) elements along each axis, as with sizes that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.dims import bounds
from ..base.dtypes import f64
from ..graph.ir import Unsupported
from .composed_body import Body

_FIX = "fix the free dimensions with --dim or --shape"


def _conv(body: Body) -> None:
    x = _padded(body, body.operand(0), body.type(1).shape[2:], "")
    body.give(0, body.op("Conv", x, body.operand(1), body.operand(2), **_without_pads(body)))


def _conv_integer(body: Body) -> None:
    zero = body.op("Reshape", body.operand(2), body.ints()) if body.has(2) else ""
    x = _padded(body, body.operand(0), body.type(1).shape[2:], zero)
    operands = [body.operand(index) for index in (1, 2, 3)]
    body.give(0, body.op("ConvInteger", x, *operands, **_without_pads(body)), is_float=False)


def _max_pool(body: Body) -> None:
    if body.wants(1):
        raise Unsupported("positions of maxima, with auto_pad and a stride over a free dimension", _FIX)
    dtype, space = body.type(0).dtype, body.type(0).shape[2:]
    if all(gap == 1 for gap in body.attribute("dilations", ())) and all(bounds(dim)[0] > 0 for dim in space):
        # A window that hangs over an edge has the elements there in it: repeated they change no maximum, and they are
        # quantized like all others.
        x = _padded(body, body.operand(0), _kernel(body), "", mode="edge")
    else:
        lowest = np.array(dtype.low, dtype.numpy)
        x = _padded(body, body.operand(0), _kernel(body), body.constant(lowest))
    body.give(0, body.op("MaxPool", x, **_without_pads(body)), dtype.is_float)


def _average_pool(body: Body) -> None:
    attributes = _without_pads(body)
    counts_padding = bool(attributes.pop("count_include_pad", 0))
    mean = body.op("AveragePool", _padded(body, body.operand(0), _kernel(body), ""), **attributes)
    if not counts_padding:  # then each mean is of fewer elements where the window hangs over
        space = body.op("Shape", "in0", start=2)
        one = body.constant(np.ones((), np.float64 if body.type(0).dtype is f64 else np.float32))
        ones = body.op("Expand", one, body.op("Concat", body.ints(1, 1), space, axis=0))
        mean = body.op("Div", mean, body.op("AveragePool", _padded(body, ones, _kernel(body), ""), **attributes))
    body.give(0, mean)


def _lp_pool(body: Body) -> None:
    x = _padded(body, body.operand(0), _kernel(body), "")
    body.give(0, body.op("LpPool", x, **_without_pads(body)))


def _kernel(body: Body) -> tuple[int, ...]:
    return tuple(body.attribute("kernel_shape", ()))


def _without_pads(body: Body) -> dict[str, Any]:
    attributes = {name: value for name, value in body.attributes.items() if name not in ("auto_pad", "pads")}
    if body.node.op_type in ("MaxPool", "AveragePool"):
        attributes.pop("ceil_mode", None)  # the padding says how many windows there are
    return attributes


def _padded(body: Body, x: str, kernel: tuple[Any, ...], number: str, mode: str = "constant") -> str:
    """All spatial axes with what SAME adds to them, half of it before (SAME_UPPER: an odd one goes after)."""
    rank = len(kernel)
    ones = (1,) * rank
    steps, gaps = body.attribute("strides", ones), body.attribute("dilations", ones)
    size, step = body.op("Shape", "in0", start=2), body.ints(*steps)
    extent = body.ints(*((k - 1) * gap + 1 for k, gap in zip(kernel, gaps, strict=True)))
    less = body.ints(*(stride - 1 for stride in steps))
    count = body.op("Div", body.op("Add", size, less), step)
    reach = body.op("Add", body.op("Mul", body.op("Sub", count, body.ints(*ones)), step), extent)
    total = body.op("Max", body.op("Sub", reach, size), body.ints(*(0 for _ in ones)))
    small = body.op("Div", total, body.ints(*(2 for _ in ones)))
    large = body.op("Sub", total, small)
    sides = (large, small) if body.attribute("auto_pad", "") == "SAME_LOWER" else (small, large)
    return body.op("Pad", x, body.op("Concat", *sides, axis=0), number, body.ints(*range(2, 2 + rank)), mode=mode)


WRITERS: dict[tuple[str, str], Callable[[Body], None]] = {
    ("", "Conv"): _conv,
    ("", "ConvInteger"): _conv_integer,
    ("", "MaxPool"): _max_pool,
    ("", "AveragePool"): _average_pool,
    ("", "LpPool"): _lp_pool,
}
