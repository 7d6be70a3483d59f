"""turn_groups: where the groups that a call normalizes, or the rows that it scans, lie so that no kernel with vectors
serves them, as columns too few to fill a vector do, the operand is copied into another order of axes, and the result
back, where that takes less time.

Invariant: the call stays what it is; only where its elements lie changes.
"""

from __future__ import annotations

from dataclasses import replace

from ...codegen.traffic import has_traffic
from ...expr.ir import operand
from ...kernels.api import static_views
from ...kinds.map import Map
from ...program.ir import Buffer, Call, Program, View
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..efforts import effort_of

CALLS = 1.05  # several calls take that much longer than one that does the same


def turn_groups(program: Program, context: Context) -> None:
    names = taken_names(program)

    def stored(like: View, order: tuple[int, ...], dry: bool) -> View:
        """A new tensor whose axes lie in that order."""
        name = like.buffer.name if dry else names.take(f"{like.buffer.name}_turned")
        shape = tuple(like.shape[axis] for axis in order)
        made = Buffer(name, like.buffer.dtype, shape, provenance=like.buffer.provenance)
        return made.whole().permuted(tuple(order.index(axis) for axis in range(len(order))))

    def turned(call: Call, order: tuple[int, ...], dry: bool = False) -> list[Call]:
        (x, *others), (y,) = call.ins, call.outs
        before, after = stored(x, order, dry), stored(y, order, dry)
        return [
            Call(Map(operand(0, x.buffer.dtype)), (x,), (before,), call.provenance),
            replace(call, ins=(before, *others), outs=(after,)),
            Call(Map(operand(0, y.buffer.dtype)), (after,), (y,), call.provenance),
        ]

    def replacement(call: Call) -> list[Call]:
        axes = call.kind.grouped
        if not axes or static_views(call) or 0 in call.outs[0].shape:
            return [call]
        kept = tuple(axis for axis in range(len(call.outs[0].shape)) if axis not in axes)
        orders = [(*kept, *axes), (*axes, *kept)]
        best = min(orders, key=lambda order: effort_of(turned(call, order, dry=True), context))
        takes = effort_of(turned(call, best, dry=True), context) * CALLS
        return turned(call, best) if takes < effort_of([call], context) else [call]

    if has_traffic(context.target) and context.target.prefer == Prefer.TIME:
        replace_calls(program.body, replacement)
