"""split_reductions: where elements of few results lie side by side, as in the largest of each of three channels, rows
of several times as many elements are combined in vectors first, then what is left of each row.

Kernels have vectors along results, which are too few, or along combined elements, which lie apart. Sums are added up in
another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

from ...base.dims import static
from ...codegen.traffic import has_traffic
from ...expr.ir import operand
from ...kernels.api import static_views
from ...kernels.registry import effort
from ...kinds.reduce import Reduce
from ...program.ir import Buffer, Call, Item, Program, View, bodies
from ...program.taken_names import taken_names
from ..api import Context

FEW = 8  # results side by side
WIDEST = 64  # elements of the rows that are combined first


def split_reductions(program: Program, context: Context) -> None:
    if has_traffic(context.target):
        _body(program.body, program, context)


def _body(body: list[Item], program: Program, context: Context) -> None:
    result: list[Item] = []
    for item in body:
        for inner in bodies(item):
            _body(inner, program, context)
        calls = parts(item, program) if isinstance(item, Call) and isinstance(item.kind, Reduce) else []
        result += calls if calls and _effort(calls, context) < _effort([item], context) else [item]
    body[:] = result


def parts(call: Call, program: Program) -> list[Call]:
    """Both reductions, or nothing where one does as well."""
    kind, views = call.of(Reduce), (*call.ins, *call.outs)
    if not kind.axes or len(views) > 2 or static_views(call) or not all(view.is_dense for view in views):
        return []
    (x,), (y,) = call.ins, call.outs
    first, last = min(kind.axes), max(kind.axes)
    shape = [static(dim) for dim in x.shape]
    if [axis for axis in range(first, last) if axis not in kind.axes and shape[axis] != 1] or 0 in shape:
        return []
    outer, count, inner = prod(shape[:first]), prod(shape[first : last + 1]), prod(shape[last + 1 :])
    most = max((m for m in range(2, WIDEST // inner + 1) if count % m == 0), default=0) if inner <= FEW else 0
    if inner == 1 or most < 2 or count < 4 * most:
        return []
    name = taken_names(program).take(f"{y.buffer.name}_rows")
    rows = Buffer(name, kind.accumulator, (outer, 1, most * inner), provenance=y.buffer.provenance)
    once, again = replace(kind, axes=(1,), epilogue=None), operand(0, kind.accumulator)
    return [
        replace(call, kind=once, ins=(_seen(x, outer, count // most, most * inner),), outs=(rows.whole(),)),
        replace(
            call,
            kind=replace(kind, axes=(1,), element=again),
            ins=(_seen(rows.whole(), outer, most, inner),),
            outs=(_seen(y, outer, 1, inner),),
        ),
    ]


def _seen(view: View, *shape: int) -> View:
    """The same elements, side by side, in another shape."""
    return replace(view, shape=shape, strides=(shape[1] * shape[2], shape[2], 1))


def _effort(calls: Sequence[Item], context: Context) -> float:
    found = [context.registry.choose(call, context.target).candidates for call in calls if isinstance(call, Call)]
    return sum(effort(each[0].cost, context.target) if each else inf for each in found)
