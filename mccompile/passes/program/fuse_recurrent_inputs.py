"""fuse_recurrent_inputs: a recurrent layer itself multiplies its inputs by the gates' weights, one time step at a time.
The product over all time steps at once is usually the largest tensor around, and needs another call.

Where memory comes first, the layer's kernel may be slower at it than the product's own (`DEARER`), and as much slower
as the memory is worth that goes with the product's result; else it has to be clearly cheaper (`CHEAPER`).
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dims import static
from ...expr.ir import Expr, apply, cast, operand
from ...kernels.registry import effort
from ...kinds.gemm import Gemm
from ...kinds.recurrent import Recurrent
from ...memory.interval import peak
from ...program.ir import TEMPORARY, Buffer, Call, Item, Program, View, bodies, reads, walk
from ...targets.api import Prefer
from ..api import Context
from ..memory.liveness import blocks_of, liveness

DEARER, CHEAPER = 1.25, 0.9


def fuse_recurrent_inputs(program: Program, context: Context) -> None:
    readers: dict[Buffer, int] = {}
    for item in walk(program.body):
        for buffer in {view.buffer for view in reads(item)}:
            readers[buffer] = readers.get(buffer, 0) + 1
    kept = {view.buffer for _, view in program.outputs}
    once = {buffer for buffer, count in readers.items() if count == 1 and buffer.role == TEMPORARY} - kept
    _absorb(program, program.body, once, context)


def _absorb(program: Program, body: list[Item], once: set[Buffer], context: Context) -> None:
    made = {item.outs[0].buffer: item for item in body if isinstance(item, Call) and isinstance(item.kind, Gemm)}
    gone: set[int] = set()
    for item in body:
        for inner in bodies(item):
            _absorb(program, inner, once, context)
        if not isinstance(item, Call) or not isinstance(item.kind, Recurrent) or "w" in item.kind.uses:
            continue
        product = made.get(item.ins[0].buffer)
        if product is None or item.ins[0].buffer not in once:
            continue
        joined = _joined(product, item, item.kind)
        if joined is None:
            continue
        most = _most(program, item.ins[0].buffer, context)
        if _taken(joined, context) <= most * (_taken(product, context) + _taken(item, context)):
            item.kind, item.ins = joined.kind, joined.ins
            item.provenance = joined.provenance
            gone.add(id(product))
    body[:] = [item for item in body if id(item) not in gone]


def _most(program: Program, made: Buffer, context: Context) -> float:
    """How many times as long the layer may take without what the product makes."""
    if context.target.prefer != Prefer.RAM:
        return CHEAPER
    lives = liveness(program, context.memory.keep_inputs)
    without = {buffer: span for buffer, span in lives.items() if buffer is not made}
    before, after = (peak(blocks_of(each, context.target.align)[0]).bytes for each in (lives, without))
    return max(DEARER, (before / max(after, 1)) ** context.memory.worth)


def _taken(call: Call, context: Context) -> float:
    """Cycles; where flash comes first, with bytes as so many."""
    candidates = context.registry.choose(call, context.target).candidates
    if not candidates:
        return float("inf")
    cost = candidates[0].cost
    return effort(cost, context.target) if context.target.prefer == Prefer.FLASH else cost.time


def _joined(product: Call, layer: Call, kind: Recurrent) -> Call | None:
    """The layer over what the product is made of, or None."""
    x, out = layer.ins[0], product.outs[0]
    views = (*product.ins, *product.outs, x)
    if not all(isinstance(n, int) for view in views for n in (*view.shape, *view.strides, view.offset)):
        return None
    if not isinstance(product.kind, Gemm) or product.kind.accumulator is not kind.accumulator:
        return None
    if product.kind.a_zero or product.kind.b_zero or not out.covers_buffer or x.offset != 0:
        return None
    a, b, *added = (_with_directions(view) for view in product.ins)
    time, batch, directions, rows = (static(dim) for dim in x.shape)
    if out.buffer.type.count != time * batch * directions * rows or b.shape[0] != directions:
        return None
    places = static(a.shape[1])
    row_strides = [static(x.strides[axis]) if x.shape[axis] != 1 else 0 for axis in (0, 1)]
    lies_as_expected = (x.strides[3] == 1 or rows == 1) and (directions == 1 or x.strides[2] == places * rows)
    if any(stride % rows for stride in row_strides) or not lies_as_expected or (directions > 1 and a.strides[0] != 0):
        return None
    steps = [stride // rows * static(a.strides[1]) for stride in row_strides]
    inputs = replace(a, shape=(time, batch, directions, a.shape[2]), strides=(*steps, 0, a.strides[2]))
    ins, uses = [inputs, *layer.ins[1:], b.permuted((0, 2, 1))], [*kind.uses, "w"]
    if added:
        bias = added[0]
        if len(added) > 1 or product.kind.epilogue not in _sums(kind, bias) or (bias.strides[1] != 0 and places > 1):
            return None
        ins.append(replace(bias, shape=(directions, rows), strides=(bias.strides[0], bias.strides[2])))
        uses.append("w_bias")
    elif product.kind.epilogue is not None:
        return None
    return Call(replace(kind, uses=tuple(uses)), tuple(ins), layer.outs, layer.provenance)


def _with_directions(view: View) -> View:
    return view if len(view.shape) == 3 else replace(view, shape=(1, *view.shape), strides=(0, *view.strides))


def _sums(kind: Recurrent, bias: View) -> tuple[Expr, ...]:
    """The spellings of a product to which a bias is added."""
    total, other = operand(0, kind.accumulator), cast(operand(1, bias.buffer.dtype), kind.accumulator)
    return apply("add", total, other), apply("add", other, total)
