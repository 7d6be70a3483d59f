"""global_pool_to_reduce: pools whose window is the whole picture become reductions where that takes less time, and
reductions of integers become such pools.

Kernels of reductions have vectors of floats along the reduced axis. Kernels of pools have vectors of any type along
channels and positions of the result, but such a pool has one position only. Before lay_channels_last, which would
copy pictures for the sake of pools. Where memory comes first it stays a pool, which takes a picture row by row.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

from ...base.dims import static
from ...codegen.loops import nest
from ...codegen.traffic import has_traffic
from ...expr.ir import Index, apply, cast, literal, operand, rebuild, walk
from ...kernels.api import static_views
from ...kernels.registry import PORTABLE, effort
from ...kinds.pool import Pool
from ...kinds.reduce import Reduce
from ...program.ir import Call, Program, View
from ...program.replace_calls import replace_calls
from ...targets.api import Prefer
from ..api import Context


def global_pool_to_reduce(program: Program, context: Context) -> None:
    def replacement(call: Call) -> list[Call]:
        if not isinstance(call.kind, Pool | Reduce):
            return [call]
        other = reduction(call, call.kind) if isinstance(call.kind, Pool) else pool(call, call.kind)
        better = other is not None and _effort(other, context, portable=False) < _effort(call, context)
        return [other] if other is not None and better else [call]

    if has_traffic(context.target) and context.target.prefer == Prefer.TIME:
        replace_calls(program.body, replacement)


def reduction(call: Call, kind: Pool) -> Call | None:
    """The same as a reduction, where the window is the whole picture."""
    x, total = call.ins[0], kind.accumulator
    whole = all(dim == size for dim, size in zip(x.shape[2:], kind.kernel, strict=True))
    if not whole or any(kind.pads) or any(size != 1 for size in kind.space) or kind.algorithm == "lp":
        return None
    epilogue = kind.epilogue
    if kind.algorithm == "average":
        count = prod(static(dim) for dim in x.shape[2:])
        pooled = operand(0, total)
        mean = apply("div", pooled, literal(count, total))
        epilogue = rebuild(epilogue or pooled, lambda node: mean if node == pooled else None)
    axes, element = tuple(range(2, len(x.shape))), cast(operand(0, x.buffer.dtype), total)
    combine = "max" if kind.algorithm == "max" else "add"
    return replace(call, kind=Reduce(axes, combine, total, element, epilogue))


def pool(call: Call, kind: Reduce) -> Call | None:
    """The same as a pool, where integers are combined as they are: what stays are its batch and channels, the others
    the axes of its picture."""
    x, total, algorithms = call.ins[0], kind.accumulator, {"add": "sum", "max": "max"}
    plain = kind.element == cast(operand(0, x.buffer.dtype), total)
    if not plain or not total.is_integer or kind.combine not in algorithms or static_views(call) or 0 in x.shape:
        return None
    if any(isinstance(node, Index) for node in walk(kind.epilogue or kind.element)):
        return None
    kept = [axis for axis in range(len(x.shape)) if axis not in kind.axes]
    views = [*call.outs, *call.ins]
    outer = nest([x.shape[axis] for axis in kept], [view.permuted(kept) for view in views])
    inner = nest([x.shape[axis] for axis in kind.axes], [x.permuted(kind.axes)], prefix="r")
    if len(outer.loops) > 2 or not inner.loops:
        return None
    around = (1,) * (2 - len(outer.loops))
    sizes, window = tuple(loop.extent for loop in outer.loops), tuple(loop.extent for loop in inner.loops)
    ones, none = (1,) * len(window), (0,) * len(window)

    def laid(number: int) -> View:
        strides = (*(0 for _ in around), *outer.strides[number])
        full = number == 1
        picture, steps = (window, inner.strides[0]) if full else (ones, none)
        return replace(views[number], shape=(*around, *sizes, *picture), strides=(*strides, *steps))

    made = Pool(algorithms[kind.combine], window, ones, ones, none * 2, ones, total, epilogue=kind.epilogue)
    found = [laid(number) for number in range(len(views))]
    return replace(call, kind=made, outs=(found[0],), ins=tuple(found[1:]))


def _effort(call: Call, context: Context, portable: bool = True) -> float:
    candidates = context.registry.choose(call, context.target).candidates
    found = [one for one in candidates if portable or one.kernel.isa != PORTABLE]
    return effort(found[0].cost, context.target) if found else inf
