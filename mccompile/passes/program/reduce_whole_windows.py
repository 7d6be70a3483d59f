"""reduce_whole_windows: pools whose window is the whole picture are reductions where that takes less time.

Kernels of reductions have vectors along what is combined, those of pools along channels and positions, of which such a
pool has one. Before lay_channels_last, which would copy pictures for the sake of pools. Where memory comes first it
stays a pool, which takes a picture row by row.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

from ...base.dims import static
from ...codegen.traffic import has_traffic
from ...expr.ir import apply, cast, literal, operand, rebuild
from ...kernels.registry import effort
from ...kinds.pool import Pool
from ...kinds.reduce import Reduce
from ...program.ir import Call, Item, Program, bodies
from ...targets.api import Prefer
from ..api import Context


def reduce_whole_windows(program: Program, context: Context) -> None:
    if has_traffic(context.target) and context.target.prefer == Prefer.TIME:
        _body(program.body, context)


def _body(body: list[Item], context: Context) -> None:
    for index, item in enumerate(body):
        for inner in bodies(item):
            _body(inner, context)
        if isinstance(item, Call) and isinstance(item.kind, Pool):
            reduced = reduction(item, item.kind)
            if reduced is not None and _effort(reduced, context) < _effort(item, context):
                body[index] = reduced


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


def _effort(call: Call, context: Context) -> float:
    found = context.registry.choose(call, context.target).candidates
    return effort(found[0].cost, context.target) if found else inf
