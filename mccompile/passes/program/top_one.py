"""top_one: the largest element alone and where it is become two reductions where these take less time.

Kernels of reductions compare whole vectors along the axis; those of TopK sift one element after the other. A NaN is the
largest element for both, but the last of the smallest ones for TopK only: the smallest of floats stay as they are.
Before global_pool_to_reduce, as a reduction of integers may be a pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...base.dtypes import f32, f64
from ...codegen.traffic import has_traffic
from ...expr.ir import operand
from ...kinds.arg_reduce import ArgReduce
from ...kinds.reduce import Reduce
from ...kinds.top_k import TopK
from ...program.ir import Call, Program, reads, walk
from ...program.replace_calls import replace_calls
from ..api import Context
from ..efforts import effort_of


def top_one(program: Program, context: Context) -> None:
    read = {view.buffer for item in walk(program.body) for view in reads(item)}
    read |= {view.buffer for _, view in program.outputs}

    def replacement(call: Call) -> list[Call]:
        calls = [each for each in reductions(call) if each.outs[0].buffer in read]
        return calls if calls and effort_of(calls, context) < effort_of([call], context) else [call]

    if has_traffic(context.target):
        replace_calls(program.body, replacement)


def reductions(call: Call) -> Iterator[Call]:
    """The largest or smallest element, and its position."""
    if not isinstance(call.kind, TopK) or call.kind.k != 1:
        return
    kind, dtype = call.kind, call.ins[0].buffer.dtype
    if not dtype.is_integer and not (dtype in (f32, f64) and kind.largest):
        return
    combine = "max" if kind.largest else "min"
    yield replace(call, kind=Reduce((kind.axis,), combine, dtype, operand(0, dtype)), outs=call.outs[:1])
    yield replace(call, kind=ArgReduce(kind.axis, kind.largest), outs=call.outs[1:])
