"""How calls of each kind propagate distributions and errors. Results of kinds without a rule count as normally
distributed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod, sqrt

import numpy as np

from ....base.dims import NotStatic, upper
from ....kernels.api import viewed
from ....kinds.api import Kind
from ....kinds.attention import Attention
from ....kinds.concat import Concat
from ....kinds.conv import Conv
from ....kinds.gemm import Gemm
from ....kinds.map import Map
from ....kinds.pad import Pad
from ....kinds.pool import Pool
from ....kinds.reduce import Reduce
from ....kinds.resize import Resize
from ....program.ir import Call
from .spread import ALIKE, MANY, MOST, finite, largest_of, normal, pooled, through
from .spreads import CallResult, Spreads, Step

LARGE = 1 << 19  # weights; of more, some of the results tell enough

Rule = Callable[[Spreads, Step], CallResult]
NUMBERS = ("float", "int", "uint", "bool")


def made_by(call: Call, spreads: Spreads) -> tuple[Step, CallResult]:
    """What a call makes of its operands, and what it does to errors."""
    numbers = all(view.buffer.dtype.kind in NUMBERS for view in (*call.ins, *call.outs))
    rule = _RULES.get(type(call.kind), _other) if numbers else _other
    step = Step(call)
    try:
        return step, rule(spreads, step)
    except NotStatic:
        step = Step(call)
        return step, _other(spreads, step)


def _conv(spreads: Spreads, step: Step) -> CallResult:
    (x, w), group = step.call.ins[:2], step.call.of(Conv).group
    if w.buffer.constant is None:
        return _other(spreads, step)
    weights = viewed(w, w.buffer.constant)
    results, inputs, taps = len(weights) // group, weights.shape[1], prod(weights.shape[2:])
    return _product(spreads, step, 1, spreads.operand(x, 1), weights.reshape(group, results, inputs, taps))


def _gemm(spreads: Spreads, step: Step) -> CallResult:
    a, b = step.call.ins[:2]
    last, depth = a.type.rank - 1, upper(a.shape[-1])
    if b.buffer.constant is not None:
        weights = viewed(b, b.buffer.constant)[(0,) * (last - 1)]
        return _product(spreads, step, last, spreads.operand(a, last), weights.T[None, :, :, None])
    squares = depth * spreads.square(a) * spreads.square(b)
    made, kept = spreads.finish(step, last, normal(np.zeros(1), np.array([squares])))
    step.products = squares * float(np.mean(kept))
    for view in (a, b):
        step.keep(view, step.products / spreads.square(view))
    return made


def _product(spreads: Spreads, step: Step, axis: int, x: np.ndarray, w: np.ndarray) -> CallResult:
    """Sums over channels of x and taps times w [groups, results, inputs, taps]."""
    every = max(-(-w.size // LARGE), 1)
    some = finite(w[:, ::every])
    squares = (some**2).sum(-1)

    def summed(channels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        each = np.broadcast_to(channels, (w.shape[0] * w.shape[2],)).reshape(w.shape[0], w.shape[2])
        sums = np.einsum("gi,goi->go", each, weights)
        return np.repeat(sums, every, 1)[:, : w.shape[1]].reshape(-1)

    sums = normal(summed(x.mean(-1), some.sum(-1)), summed(x.var(-1), squares))
    made, kept = spreads.finish(step, axis, sums if len(sums) <= MOST else pooled(sums))
    step.products = float(np.mean(kept * summed((x**2).mean(-1), squares)))
    step.keep(step.call.ins[0], step.products / spreads.square(step.call.ins[0]))
    return made


def _map(spreads: Spreads, step: Step) -> CallResult:
    ins = step.call.ins
    axis = spreads.axis(ins)
    operands = [spreads.operand(view, axis) for view in ins]
    results, kept = spreads.expression(step, step.call.of(Map).expr, operands, ins)
    for view, each in zip(ins, kept, strict=True):
        spreads.keep(step, view, axis, each)
    return CallResult(axis, results)


def _pool(spreads: Spreads, step: Step) -> CallResult:
    """Neighbours are alike to some degree, their errors are not."""
    kind, view = step.call.of(Pool), step.call.ins[0]
    x, many, gain = spreads.operand(view, 1), prod(kind.kernel), 1.0
    if kind.algorithm == "max":
        sums = largest_of(x, many)
    elif kind.algorithm == "average":
        sums, gain = normal(x.mean(-1), x.var(-1) / sqrt(many)), 1 / many
    else:
        sums, gain = normal(x.mean(-1) * many, x.var(-1) * many * sqrt(many)), many
    made, kept = spreads.finish(step, 1, sums)
    spreads.keep(step, view, 1, kept * gain)
    return made


def _reduce(spreads: Spreads, step: Step) -> CallResult:
    call, kind = step.call, step.call.of(Reduce)
    if kind.combine != "add":
        return _other(spreads, step)
    operands, many = call.ins[: kind.operands], prod(upper(call.ins[0].shape[axis]) for axis in kind.axes)
    axis = spreads.axis(operands)
    elements, kept = through(kind.element, [spreads.operand(view, axis) for view in operands])
    if axis in kind.axes:
        elements, kept = np.sort(elements.reshape(-1))[None, :: len(elements)], [each.mean()[None] for each in kept]
    made, after = spreads.finish(step, axis, normal(elements.mean(-1) * many, elements.var(-1) * many * sqrt(many)))
    for view, each in zip(operands, kept, strict=True):
        spreads.keep(step, view, axis, each * many * after)
    return made


def _concat(spreads: Spreads, step: Step) -> CallResult:
    axis, ins = step.call.of(Concat).axis, step.call.ins
    sizes = [upper(view.shape[axis]) for view in ins]
    for view, size in zip(ins, sizes, strict=True):
        step.keep(view, size / max(sum(sizes), 1))
    parts = [spreads.operand(view, axis) for view in ins]
    if not 0 < sum(sizes) <= MOST:
        return CallResult(axis, pooled(np.concatenate(parts)))
    return CallResult(axis, np.concatenate([np.broadcast_to(p, (n, MANY)) for p, n in zip(parts, sizes, strict=True)]))


def _moved(spreads: Spreads, step: Step) -> CallResult:
    x = step.call.ins[0]
    step.keep(x, 1.0)
    return CallResult(1, spreads.operand(x, 1)) if x.type.rank > 1 else CallResult(-1, ALIKE.quantiles)


def _attention(spreads: Spreads, step: Step) -> CallResult:
    """Means of values; errors of their weights hardly count."""
    if step.call.of(Attention).scaled:
        return _other(spreads, step)
    values = step.call.ins[2]
    step.keep(values, 1.0)
    return CallResult(values.type.rank - 1, spreads.operand(values, values.type.rank - 1))


def _other(spreads: Spreads, step: Step) -> CallResult:
    """Errors of all operands arrive, as large beside the result as beside the operand."""
    for view in step.call.ins:
        step.keep(view, 1 / spreads.square(view))
    return CallResult(-1, ALIKE.quantiles)


_RULES: Mapping[type[Kind], Rule] = {
    Attention: _attention,
    Concat: _concat,
    Conv: _conv,
    Gemm: _gemm,
    Map: _map,
    Pad: _moved,
    Pool: _pool,
    Reduce: _reduce,
    Resize: _moved,
}
