"""top_one: the largest element alone and where it is become two reductions where these take less time.

Kernels of reductions compare whole vectors along the axis; those of TopK sift one element after the other. A NaN is the
largest element for both, but the last of the smallest ones for TopK only: the smallest of floats stay as they are.
Before global_pool_to_reduce, as a reduction of integers may be a pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from ...base.dtypes import f32, f64
from ...codegen.traffic import has_traffic
from ...expr.ir import operand
from ...kernels.registry import effort
from ...kinds.arg_reduce import ArgReduce
from ...kinds.reduce import Reduce
from ...kinds.top_k import TopK
from ...program.ir import Buffer, Call, Item, Program, bodies, reads, walk
from ..api import Context


def top_one(program: Program, context: Context) -> None:
    if has_traffic(context.target):
        read = {view.buffer for item in walk(program.body) for view in reads(item)}
        _body(program.body, read | {view.buffer for _, view in program.outputs}, context)


def _body(body: list[Item], read: set[Buffer], context: Context) -> None:
    result: list[Item] = []
    for item in body:
        for inner in bodies(item):
            _body(inner, read, context)
        calls = [each for each in reductions(item) if each.outs[0].buffer in read]
        result += calls if calls and _effort(calls, context) < _effort([item], context) else [item]
    body[:] = result


def reductions(item: Item) -> Iterator[Call]:
    """The largest or smallest element, and its position."""
    if not isinstance(item, Call) or not isinstance(item.kind, TopK) or item.kind.k != 1:
        return
    kind, dtype = item.kind, item.ins[0].buffer.dtype
    if not dtype.is_integer and not (dtype in (f32, f64) and kind.largest):
        return
    combine = "max" if kind.largest else "min"
    yield replace(item, kind=Reduce((kind.axis,), combine, dtype, operand(0, dtype)), outs=item.outs[:1])
    yield replace(item, kind=ArgReduce(kind.axis, kind.largest), outs=item.outs[1:])


def _effort(calls: Sequence[Item], context: Context) -> float:
    found = [context.registry.choose(call, context.target).candidates for call in calls if isinstance(call, Call)]
    return sum(effort(each[0].cost, context.target) if each else inf for each in found)
