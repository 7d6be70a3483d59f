"""Rules for sums and means of quantized tensors over windows and axes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ....base.dims import static
from ....base.dtypes import i32
from ....graph.ir import Value
from ....ops.api import normal_axes
from ....ops.binary import Mul
from ....ops.cast import Cast
from ....ops.fixed_point import SumPool
from ....ops.pad import Pad
from ....ops.pool import AveragePool
from ....ops.reduce import ReduceMean, ReduceSum
from ....ops.reshape import Reshape
from ....ops.rules.window import Window
from ....ops.transpose import Transpose
from ...pattern import ConstantOperand, Maker, Match, ResultOf
from ...quantized.quantized_tensors import Scheme, rescaled
from .quantized_patterns import X, between, bounds, result, source, zero_of


def _pool(match: Match, make: Maker) -> Value | None:
    """Means of the elements that a window has inside of the image. Where these are of different numbers, sums become
    those of as many everywhere: of a common multiple."""
    x, q, node = source(match, "x"), match["x"], match.node("anchor")
    type = q.type
    if x is None or not type.is_static:
        return None
    space = type.static_shape[2:]
    if isinstance(node.op, AveragePool):
        window, out = node.op.window(node.site())
        if any(window.pads) and node.op.count_include_pad and not node.op.ceil_mode:
            before, after = window.pads[: len(space)], window.pads[len(space) :]
            edges = make.constant(np.array([0, 0, *before, 0, 0, *after], np.int64), f"{match.root.output.name}/pads")
            q = make.node(Pad(), q, edges, zero_of(make, q, x))
            space = tuple(a + n + b for a, n, b in zip(before, space, after, strict=True))
            window = replace(window, pads=(0,) * len(window.pads))
        if any(window.pads) and node.op.count_include_pad:
            return None
        taken = [_taken(window, axis, static(count), space[axis]) for axis, count in enumerate(out)]
        pool = SumPool(window.kernel, window.strides, window.dilations, window.pads, node.op.ceil_mode)
    else:
        ones = (1,) * len(space)
        taken = [np.array([size]) for size in space]
        pool = SumPool(space, ones, ones, (0,) * (2 * len(space)))
    each = [int(np.lcm.reduce(counts)) for counts in taken]
    count = math.prod(each)
    if count == 0 or count * max(-x.low, x.high) > i32.high:
        return None
    total = make.node(pool, q)
    for axis, (counts, multiple) in enumerate(zip(taken, each, strict=True)):
        if (counts != multiple).any():
            shape = [-1 if axis == other else 1 for other in range(len(each))]
            times = (multiple // counts).astype(np.int32).reshape(1, 1, *shape)
            total = make.node(Mul(), total, make.constant(times, f"{match.root.output.name}/times_{axis}"))
    return _scaled(match, make, total, x, count, count)


def _taken(window: Window, axis: int, positions: int, size: int) -> np.ndarray:
    """How many of its elements the window has inside of the image, at each position along an axis."""
    first = np.arange(positions)[:, None] * window.strides[axis] - window.pads[axis]
    places = first + np.arange(window.kernel[axis]) * window.dilations[axis]
    found: np.ndarray = np.count_nonzero((places >= 0) & (places < size), axis=1)
    return found


def _reduced(match: Match, make: Maker) -> Value | None:
    """Sums or means over axes."""
    x, q, op = source(match, "x"), match["x"], match.node("anchor").op
    assert isinstance(op, ReduceMean | ReduceSum)
    axes = normal_axes(match.array("axes").reshape(-1).tolist(), q.type.rank)
    if x is None or not q.type.is_static or not axes:
        return None
    maker = q.producer
    if maker is not None and type(maker.op) is Transpose and maker.inputs[0] is not None:
        order = maker.op.order(q.type.rank)
        if [order[a] for a in range(len(order)) if a not in axes] == [0, 1] and q.type.rank == 4:  # channels-last
            q, axes = maker.inputs[0], (2, 3)
    shape = q.type.static_shape
    over = make.constant(np.array(axes, np.int64), f"{match.root.output.name}/axes")
    if axes == tuple(range(2, 4)) and len(shape) == 4:
        total = make.node(SumPool(shape[2:], (1, 1), (1, 1), (0,) * 4), q)
        if total.type.shape != match.node("anchor").output.type.shape:
            to = np.array(match.node("anchor").output.type.static_shape, np.int64)
            total = make.node(Reshape(), total, make.constant(to, f"{match.root.output.name}/shape"))
    else:
        total = make.node(ReduceSum(0, op.keepdims), make.node(Cast(i32.onnx), q), over)
    count = math.prod(shape[axis] for axis in axes)
    return _scaled(match, make, total, x, count, count if isinstance(op, ReduceMean) else 1)


def _scaled(match: Match, make: Maker, total: Value, x: Scheme, count: int, divisor: int) -> Value | None:
    """A sum of so many elements, divided by a number."""
    y = result(match)
    factor = x.scale / (divisor * y.scale)
    reach, constant = [(count * x.low, count * x.high)], -factor * count * x.zero
    wanted = max(0, divisor.bit_length() - 3)
    shifts = sorted(range(9), key=lambda shift: abs(shift - wanted))
    return rescaled(make, [total], [[factor]], [constant], [reach], (), y, bounds(match), shifts=shifts)


SUMS = (
    between("pool", ResultOf("AveragePool GlobalAveragePool", X, name="anchor", read_once=True), _pool),
    between(
        "reduced", ResultOf("ReduceMean ReduceSum", X, ConstantOperand("axes"), name="anchor", read_once=True), _reduced
    ),
)
