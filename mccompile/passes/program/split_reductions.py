"""split_reductions: where elements of few results lie side by side, as in the largest of each of three channels, rows
of several times as many elements are combined in vectors first, then what is left of each row. The last elements, where
they make no row, are copied behind it.

Kernels have vectors along results, which are too few, or along combined elements, which lie apart. Sums are added up in
another order.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...base.dims import static
from ...codegen.traffic import has_traffic
from ...expr.ir import operand
from ...kernels.api import static_views
from ...kinds.map import Map
from ...kinds.reduce import Reduce
from ...program.ir import Buffer, Call, Program, View
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ..api import Context
from ..efforts import effort_of

FEW = 8  # results side by side
WIDEST = 64  # elements of the rows that are combined first


def split_reductions(program: Program, context: Context) -> None:
    def replacement(call: Call) -> list[Call]:
        calls = parts(call, program) if isinstance(call.kind, Reduce) else []
        return calls if calls and effort_of(calls, context) < effort_of([call], context) else [call]

    if has_traffic(context.target):
        replace_calls(program.body, replacement)


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
    widest = WIDEST // inner if inner <= FEW else 0
    whole = max((m for m in range(2, widest + 1) if count % m == 0), default=0)
    most = whole if 2 * whole > widest else widest  # elements of a result in a row
    if inner == 1 or most < 2 or count < 4 * most:
        return []
    return _in_rows(call, _seen(x, outer, count, inner), _seen(y, outer, 1, inner), most, program)


def _in_rows(call: Call, x: View, y: View, most: int, program: Program) -> list[Call]:
    kind, (outer, count, inner) = call.of(Reduce), x.type.static_shape
    rows, left = divmod(count, most)
    name = taken_names(program).take(f"{y.buffer.name}_rows")
    made = Buffer(name, kind.accumulator, (outer, most + left, inner), provenance=y.buffer.provenance).whole()
    once = replace(kind, axes=(1,), epilogue=None)
    again = replace(once, element=operand(0, kind.accumulator), epilogue=kind.epilogue)
    wide = most * inner
    many = replace(x, shape=(outer, rows, wide), strides=(count * inner, wide, 1))
    row = replace(made, shape=(outer, 1, wide), strides=(wide + left * inner, wide, 1))
    behind = x.sliced(1, rows * most, left), made.sliced(1, most, left)
    return [
        replace(call, kind=once, ins=(many,), outs=(row,)),
        *([replace(call, kind=Map(kind.element), ins=behind[:1], outs=behind[1:])] if left else []),
        replace(call, kind=again, ins=(made,), outs=(y,)),
    ]


def _seen(view: View, *shape: int) -> View:
    """The same elements, side by side, in another shape."""
    return replace(view, shape=shape, strides=(shape[1] * shape[2], shape[2], 1))
